//! Lists the catalogue's files for `src/catalogue.rs`, so that adding a provider is adding a file.

use std::{error::Error, fmt::Write as _, fs, path::PathBuf};

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folders by the environment alone"
)]
fn folder(variable: &str) -> Result<PathBuf, Box<dyn Error>> {
    Ok(PathBuf::from(std::env::var(variable)?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let catalogue = folder("CARGO_MANIFEST_DIR")?.join("catalogue");
    let mut files: Vec<PathBuf> = fs::read_dir(&catalogue)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .ok_or("a file's name is no UTF-8")?;
        writeln!(
            list,
            "    ({name:?}, include_str!({:?})),",
            path.to_str().ok_or("a folder's name is no UTF-8")?
        )?;
    }
    list.push_str("]\n");
    fs::write(folder("OUT_DIR")?.join("catalogue.rs"), list)?;
    println!("cargo::rerun-if-changed=catalogue");
    Ok(())
}
