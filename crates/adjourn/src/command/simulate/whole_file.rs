//! Files that are written whole or not at all.

use std::{
    fs::{self, Permissions},
    io::Write,
    path::Path,
};

use crate::ending::{Ended, Failure};

/// Whether a file can be written there, as far as that shows before the work is done.
pub(super) fn check(path: &Path) -> Ended {
    let shown = path.display();
    let folder = folder(path);
    if !folder.is_dir() {
        let words = format!("{shown}: there is no folder {}", folder.display());
        return Err(Failure::bad(words));
    }
    // What is no file is not replaced by one: a device, a pipe, a folder.
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => Err(Failure::bad(format!("{shown}: is there and is no file; name a file"))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether two paths are two files: one would be written over the other. Paths of folders that are there.
pub(super) fn are_two(one: &Path, another: &Path) -> bool {
    let place = |path: &Path| {
        let folder = folder(path);
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        (folder, path.file_name().map(std::ffi::OsStr::to_os_string))
    };
    place(one) != place(another)
}

/// Writes a file beside its place, and moves it there once it is whole.
pub(super) fn write(path: &Path, text: &str) -> Ended {
    let write = || {
        let mut making = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As any new file's: the umask takes its part.
            making.permissions(Permissions::from_mode(0o666));
        }
        let mut file = making.prefix(".adjourn-").tempfile_in(folder(path))?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)
    };
    write()
        .map(drop)
        .map_err(|error| Failure::bad(format!("{}: cannot be written: {error}", path.display())))
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
