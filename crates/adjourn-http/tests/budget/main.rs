//! What a rate budget does, as who uses it sees it: each test is named after that. Time is virtual.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod disabled;
#[cfg(test)]
mod feedback;
#[cfg(test)]
mod finding;
#[cfg(test)]
mod flight;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod scopes;
#[cfg(test)]
mod spends;
#[cfg(test)]
mod throttle;
#[cfg(test)]
mod turns;
