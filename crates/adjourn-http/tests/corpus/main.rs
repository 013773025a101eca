//! What the reader makes of the corpus, of the catalogue's own cases, of the faults of others, and of anything at all.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod asks;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod round_trip;
