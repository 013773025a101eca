//! What a user of the store and of its poller sees.

#[cfg(test)]
mod cancelling;
#[cfg(test)]
mod fairness;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hand_off;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod looking;
#[cfg(test)]
mod paces;
#[cfg(test)]
mod polling;
#[cfg(test)]
mod redriving;
#[cfg(test)]
mod sending;
