//! The program for profilers knows every shipped kernel, and every planted mistake shows.

#[path = "probe/probes/mod.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod program;

use std::collections::BTreeMap;

use linrec::Error;
use linrec::device::Device;

use crate::scan_gradients::{oracle, problem};
use crate::selective_scan::{given, reference};

#[test]
fn every_kernel_without_a_mistake_is_right() {
    let device = Device::simt();
    let mut count = 0;
    for probe in program::all().iter().filter(|probe| probe.is_correct()) {
        let ran = probe.run(&device).unwrap_or_else(|error| panic!("{}: {error}", probe.name()));
        assert_eq!(ran.verdict, Ok(()), "{}", probe.name());
        assert!(ran.counters.is_some_and(|counters| counters.instructions > 0));
        count += 1;
    }
    assert!(count >= 80, "{count} kernels");
}

#[test]
fn every_mistake_is_reported_or_seen_in_the_results() {
    let device = Device::simt();
    let mut found = BTreeMap::new();
    for probe in program::all().iter().filter(|probe| !probe.is_correct()) {
        let is_found = match probe.run(&device) {
            Ok(ran) => ran.verdict.is_err(),
            Err(Error::Kernel(_)) => true,
            Err(error) => panic!("{}: {error}", probe.name()),
        };
        *found.entry(probe.module).or_insert(false) |= is_found;
    }
    let missed: Vec<_> = found.iter().filter(|(_, is_found)| !**is_found).collect();
    assert!(missed.is_empty() && found.len() >= 25, "{missed:?} of {}", found.len());
}
