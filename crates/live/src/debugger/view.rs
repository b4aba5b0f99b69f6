//! The state of a launch at a step, as a page shows it.

use serde_json::{Value, json};
use simt::{Access, Class, Counters, Path, Register, Step, Values, Waits, Warp};

use super::Debugger;
use super::access::{self, word};
use crate::number;

impl Debugger {
    /// Returns the place of the current warp, the state of all warps, the registers of the shown
    /// warp, shared memory, and the events of the last command.
    pub(super) fn view(&mut self) -> Value {
        let events = self.arrive();
        let events = events.iter().map(|event| access::event(event, &self.arrays));
        let events: Vec<Value> = events.collect();
        let position = self.stepper.position();
        let step = self.stepper.steps().get(position);
        let shown = self.looked_at.or(self.stepper.current());
        let place = step.map(|step| self.place(step.pc));
        let counters = self.stepper.counters();
        json!({
            "step": position,
            "says": self.says(position),
            "wrong": step.is_none() && self.is_wrong(),
            "place": place,
            "block": step.map(|step| step.block),
            "warp": step.map(|step| step.warp),
            "lanes": step.map_or(0, |step| step.active),
            "back": position > 0,
            "ahead": position < self.stepper.len(),
            "shown": shown,
            "warps": self.stepper.warps().iter().map(|warp| self.warp(warp)).collect::<Vec<_>>(),
            "registers": shown.map_or(Vec::new(), |(block, warp)| self.registers(block, warp)),
            "shared": shown.map_or(Vec::new(), |(block, _)| self.shared(block)),
            "events": events,
            "counters": counted(&counters),
        })
    }

    /// Returns the place of an instruction, and its text.
    fn place(&self, pc: u32) -> Value {
        let (line, opcode) = self.stepper.kernel().instruction(pc);
        let text = self.ptx.get(line as usize - 1).map_or(opcode, |text| text.trim());
        let (file, source) = self.stepper.kernel().source(pc).unwrap_or(("", 0));
        json!({ "file": file, "line": source, "ptx": line, "text": text.replace('\t', " ") })
    }

    /// Returns true if the launch was reported, or if its outputs are wrong.
    fn is_wrong(&self) -> bool {
        self.stepper.result().is_err() || matches!(self.verdict, Some((_, false)))
    }

    /// Describes a step in a sentence.
    fn says(&self, position: usize) -> String {
        let all = self.stepper.len();
        let Some(step) = self.stepper.steps().get(position) else {
            return match self.stepper.result() {
                Ok(_) => {
                    let verdict = self.verdict.as_ref().map_or("", |(verdict, _)| verdict);
                    format!("All {all} steps are done: every warp has left. {verdict}")
                }
                Err(report) => format!("Step {all} of {all}: {report}"),
            };
        };
        let lanes = match step.active {
            0 => "no lane, as its condition holds in none".to_owned(),
            lanes => number::lanes(lanes),
        };
        let Step { block, warp, pc, .. } = *step;
        format!(
            "Step {position} of {all}: block {block}, warp {warp}, {lanes}, at {}.",
            self.line_of(pc)
        )
    }

    /// Returns the source line of an instruction, `scan.cuh:52`, or else its line in the PTX.
    fn line_of(&self, pc: u32) -> String {
        match self.stepper.kernel().source(pc) {
            Some((file, line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
            None => format!("PTX line {}", self.stepper.kernel().instruction(pc).0),
        }
    }

    /// Returns the state of a warp: `all lanes at scan.cuh:52, waiting at the barrier`.
    fn warp(&self, warp: &Warp) -> Value {
        let path = |path: &Path| {
            let waits = match path.waits {
                Some(Waits::Block) => ", waiting at the barrier",
                Some(Waits::Lanes) => ", waiting for lanes of their warp",
                None => "",
            };
            format!("{} at {}{waits}", number::lanes(path.lanes), self.line_of(path.pc))
        };
        let paths: Vec<String> = warp.paths.iter().map(path).collect();
        json!({
            "block": warp.block,
            "warp": warp.warp,
            "waits": !warp.paths.is_empty() && warp.paths.iter().all(|path| path.waits.is_some()),
            "left": warp.paths.is_empty(),
            "says": if paths.is_empty() { "has left".to_owned() } else { paths.join("; ") },
        })
    }

    /// Returns the registers that may still be needed. Registers with a C++ name come first.
    fn registers(&self, block: u32, warp: u32) -> Vec<Value> {
        let registers = self.stepper.registers(block, warp);
        let (named, others): (Vec<_>, Vec<_>) =
            registers.iter().partition(|register| self.names.contains_key(&*register.name));
        let shown = |register: &Register| {
            json!({
                "name": &*register.name,
                "cpp": self.names.get(&*register.name),
                "type": register.ty,
                "values": self.values(register),
            })
        };
        named.into_iter().chain(others).map(shown).collect()
    }

    fn values(&self, register: &Register) -> Vec<String> {
        match &register.values {
            Values::Mask(mask) => (0..32).map(|lane| (mask >> lane & 1).to_string()).collect(),
            Values::Words(words) if register.ty == "f32" => {
                words.iter().map(|&bits| number::float(f32::from_bits(bits).into())).collect()
            }
            // Shuffles use copies of floats in such registers.
            Values::Words(words)
                if words.iter().all(|&bits| number::looks_like_float(bits))
                    && words.iter().any(|&bits| bits != 0) =>
            {
                words.iter().map(|&bits| word(bits)).collect()
            }
            Values::Words(words) => words.iter().map(|&bits| (bits as i32).to_string()).collect(),
            Values::Longs(longs) if register.ty == "f64" => {
                longs.iter().map(|&bits| number::float(f64::from_bits(bits))).collect()
            }
            Values::Longs(longs) => longs.iter().map(|&bits| self.address(bits)).collect(),
        }
    }

    /// Returns an address as its array and element, or as a number.
    fn address(&self, bits: u64) -> String {
        match access::find(&self.arrays, bits) {
            Some(array) => {
                let offset = bits - array.address;
                let (element, rest) =
                    (offset / array.ty.bytes() as u64, offset % array.ty.bytes() as u64);
                let rest = if rest == 0 { String::new() } else { format!(" + {rest} B") };
                format!("&{}[{element}]{rest}", array.name)
            }
            None => (bits as i64).to_string(),
        }
    }

    fn shared(&self, block: u32) -> Vec<Value> {
        let words = self.stepper.shared(block);
        words.into_iter().map(|cell| cell.map_or(Value::Null, |bits| word(bits).into())).collect()
    }
}

/// Returns the counts with their names.
fn counted(counters: &Counters) -> Vec<(&'static str, u64)> {
    let shared = |access| counters.sites.iter().filter(move |site| site.access == access);
    let passes = |access| shared(access).map(|site| site.wavefronts).sum::<u64>();
    let conflicts = |access| shared(access).map(|site| site.conflicts).sum::<u64>();
    let both = [Access::SharedLoad, Access::SharedStore];
    let all = [
        ("instructions of warps", counters.instructions),
        ("load requests", counters.requests(Access::GlobalLoad)),
        ("sectors loaded", counters.sectors(Access::GlobalLoad)),
        ("store requests", counters.requests(Access::GlobalStore)),
        ("sectors stored", counters.sectors(Access::GlobalStore)),
        ("sectors copied to shared memory", counters.sectors(Access::CopyAsync)),
        ("atomic requests", counters.requests(Access::GlobalAtomic)),
        ("passes over shared memory", both.map(passes).iter().sum()),
        ("of these for bank conflicts", both.map(conflicts).iter().sum()),
        ("products of matrices", counters.class(Class::Matrix)),
        ("shuffles and votes", counters.class(Class::Shuffle)),
        ("barriers", counters.barriers),
        ("divergent branches", counters.divergent_branches),
    ];
    all.into_iter().filter(|&(_, count)| count > 0).collect()
}
