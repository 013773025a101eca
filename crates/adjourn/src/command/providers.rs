//! `adjourn providers`: the catalogue, or one provider of it.

use std::io::{self, BufWriter, Write};

use adjourn_http::{CatalogueEntry, Contract};

use crate::{
    cli::Providers,
    ending::{Ended, Failure},
    environment::Environment,
    listed::{self, Facts},
    named,
    paint::Paint,
};

pub(crate) fn run(asked: &Providers, as_json: bool, environment: &Environment) -> Ended {
    let paint = Paint::stdout(environment);
    let mut stdout = BufWriter::new(io::stdout().lock());
    if let Some(name) = &asked.name {
        let found = named::find(name, None).map_err(named::Unknown::no)?;
        let contract = found.contract.unwrap_or_default();
        if as_json {
            object(&mut stdout, &found.name, &contract)?;
        } else {
            listed::detail(&mut stdout, &found.name, &contract, paint)?;
        }
        return Ok(stdout.flush()?);
    }
    let providers = CatalogueEntry::all()
        .map(|entry| Ok((entry.name(), entry.contract()?)))
        .collect::<Result<Vec<_>, adjourn_http::ContractError>>()
        .map_err(Failure::no)?;
    if asked.markdown {
        listed::page(&mut stdout, &providers)?;
    } else if as_json {
        for (name, contract) in &providers {
            object(&mut stdout, name, contract)?;
        }
    } else {
        listed::table(&mut stdout, &providers, paint)?;
    }
    Ok(stdout.flush()?)
}

fn object(out: &mut impl Write, name: &str, contract: &Contract) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Facts::of(name, contract))?;
    writeln!(out)
}
