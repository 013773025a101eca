//! What the reader makes of the corpus and of the catalogue's own cases.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod responses;
