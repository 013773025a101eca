//! A provider's contract: an entry of the catalogue, one of the settings' own, or one over an entry.

use std::sync::Arc;

use super::sheet::{Sheet, Table};
use crate::{CatalogueEntry, Contract, contract, nearest};

const ALLOWED: &str = "a name of the catalogue, or a table [providers.NAME.contract] that may extend one";

pub(super) fn read(sheet: &mut Sheet<'_>, provider: &Table<'_>) -> Option<Arc<Contract>> {
    let value = provider.get("contract")?;
    if value.get_ref().as_str().is_some() {
        return entry(sheet, provider, "contract").map(Arc::new);
    }
    if value.get_ref().as_table().is_none() {
        sheet.refuse(provider, "contract", value, ALLOWED);
        return None;
    }
    let table = sheet.table(provider, "contract")?;
    let base = entry(sheet, &table, "extends");
    let own = contract::inline(sheet, &table, base.as_ref());
    Some(Arc::new(match &base {
        Some(base) => own.over(base),
        None => own,
    }))
}

/// The catalogue's entry of that name.
fn entry(sheet: &mut Sheet<'_>, table: &Table<'_>, key: &str) -> Option<Contract> {
    let name = sheet.text(table, key, ALLOWED)?;
    let start = table.get(key)?.span().start;
    let Some(entry) = CatalogueEntry::find(name) else {
        let words = format!("{name:?} {}", nearest::unknown(&CatalogueEntry::names(), name));
        sheet.problem(start, &table.key(key), words);
        return None;
    };
    entry
        .contract()
        .map_err(|error| {
            sheet.problem(
                start,
                &table.key(key),
                format!("its entry of the catalogue is wrong: {error}"),
            )
        })
        .ok()
}
