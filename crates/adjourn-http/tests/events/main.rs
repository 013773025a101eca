//! What is logged, and when: events of waits, of refusals, and of nothing twice. A program of its own, since `tracing` asks
//! once for each place in the code whether anybody listens to it, and a thread of another test that comes there first would
//! answer for all: here no test begins before there is a listener.

#[cfg(test)]
mod budget;
#[cfg(test)]
mod logged;
#[cfg(test)]
#[expect(dead_code, reason = "the requester's own tests ask more of it")]
#[path = "../../src/requester/loopback.rs"]
mod loopback;
#[cfg(test)]
mod requester;
