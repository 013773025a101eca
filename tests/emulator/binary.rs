//! The binary itself: whether Lambda's operating system can run it.

use object::{LittleEndian, elf::FileHeader64, read::elf::FileHeader as _};

use super::account::given;

/// The versions of the C library that an executable asks for, from its GNU version needs.
fn needed(binary: &[u8]) -> Vec<(u32, u32)> {
    let header = FileHeader64::<LittleEndian>::parse(binary).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, binary).unwrap();
    let (mut needs, strings) = sections.gnu_verneed(endian, binary).unwrap().expect("version needs");
    let strings = sections.strings(endian, binary, strings).unwrap();
    let mut versions = Vec::new();
    while let Some((_, mut names)) = needs.next().unwrap() {
        while let Some(name) = names.next().unwrap() {
            let name = std::str::from_utf8(name.name(endian, strings).unwrap()).unwrap();
            let Some(version) = name.strip_prefix("GLIBC_") else {
                continue;
            };
            let mut numbers = version.split('.').map(|number| number.parse().unwrap());
            versions.push((numbers.next().unwrap(), numbers.next().unwrap()));
        }
    }
    versions
}

#[test]
fn it_asks_for_no_c_library_that_amazon_linux_2023_does_not_have() {
    let versions = needed(&std::fs::read(given("ADJOURN_TEST_BOOTSTRAP")).unwrap());
    let newest = versions.iter().max().expect("it asks for the C library");
    assert!(
        *newest <= (2, 34),
        "it asks for GLIBC_{}.{}; Amazon Linux 2023 has 2.34",
        newest.0,
        newest.1
    );
}
