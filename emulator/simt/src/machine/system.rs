//! The functions behind `printf` and `assert`, which a CUDA program calls without defining them.

use super::print::{Spec, piece};
use super::state::{Lanes, Next, Place, Registers, Run, Scratch};
use crate::isa::{
    Call, LOCAL_WINDOW, Order, PARAMETER_WINDOW, Passed, SHARED_WINDOW, System, WINDOW_END,
};
use crate::machine::access::local::local_word;
use crate::memory::global::variables;
use crate::report::{Printed, ReportKind, Result, bytes_of, fault, lanes as each};

/// The most bytes that one call prints, and the longest string that it reads.
const MOST_TEXT: usize = 1 << 14;
/// The most bytes that a report quotes of each text of an assertion.
const MOST_QUOTED: usize = 200;

impl Run<'_> {
    /// Reports that lanes execute `trap`, and why if the reason is known.
    pub(crate) fn trap(
        &mut self,
        _: &mut Registers,
        _: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
    ) -> Result<Next> {
        let kernel = self.launch.kernel;
        let message = if kernel.opcodes[place.pc as usize].starts_with("brx") {
            "branches by an index that is not among those of its list of labels"
        } else if self.workspace == 0 && kernel.uses_workspace() {
            variables::MISSING
        } else {
            "executes trap"
        };
        fault(ReportKind::Trap, at.active, message.to_string())
    }

    /// Calls the function in one lane after the other, the lowest first. On a GPU the order is
    /// open.
    pub(crate) fn call_system(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        call: &Call,
        frames: [u64; 32],
        system: System,
    ) -> Result<()> {
        for lane in each(at.active) {
            let argument = |scratch: &Scratch<'_>, number: usize| {
                let passed = call.arguments.get(number);
                passed.map_or(0, |passed| in_frame(scratch, lane, frames[lane], *passed))
            };
            let arguments: [u64; 4] = std::array::from_fn(|number| argument(scratch, number));
            match system {
                System::Print => {
                    let count = self.print(scratch, place, lane, arguments[0], arguments[1])?;
                    if let Some(Some(result)) = call.returns.first() {
                        let word =
                            ((frames[lane] + u64::from(result.offset)) / 4) as usize * 32 + lane;
                        if let Some(word) = scratch.local.get_mut(word) {
                            *word = count;
                        }
                    }
                }
                System::Assert => {
                    let [message, file, line, function] = arguments;
                    let [message, file, function] = [message, file, function].map(|text| {
                        let text = self.text(scratch, place, lane, text, MOST_QUOTED);
                        text.map(|text| String::from_utf8_lossy(&text).into_owned())
                    });
                    let thread = place.warp * 32 + lane as u32;
                    let [x, y, _] = self.launch.block;
                    let (message, file, function) = (message?, file?, function?);
                    let message = format!(
                        "fails the assertion `{message}` of {file}:{line} in `{function}`, thread ({}, {}, {})",
                        thread % x,
                        thread / x % y,
                        thread / x / y,
                    );
                    return fault(ReportKind::Assert, at.active, message);
                }
            }
        }
        Ok(())
    }

    /// Executes `vprintf`: prints the text, and returns the number of arguments.
    fn print(
        &mut self,
        scratch: &Scratch<'_>,
        place: &Place,
        lane: usize,
        format: u64,
        arguments: u64,
    ) -> Result<u32> {
        let format = self.text(scratch, place, lane, format, usize::MAX)?;
        let (mut text, mut rest, mut next, mut count) = (Vec::new(), &format[..], arguments, 0);
        while let Some(&first) = rest.first() {
            let Some((spec, length)) = (first == b'%').then(|| Spec::read(rest)).flatten() else {
                text.push(first);
                rest = &rest[1..];
                continue;
            };
            rest = &rest[length..];
            if spec.kind == b'%' {
                text.push(b'%');
                continue;
            }
            if spec.is_too_wide() {
                let message = "prints with a width or precision of more than 1000".to_string();
                return fault(ReportKind::Call, 1 << lane, message);
            }
            let bytes = spec.bytes();
            next = next.next_multiple_of(bytes.into());
            let value = self.value(scratch, place, lane, next, bytes)?;
            next = next.wrapping_add(bytes.into());
            let string = match spec.kind {
                b's' => self.text(scratch, place, lane, value, spec.most())?,
                _ => Vec::new(),
            };
            text.extend(piece(&spec, value, &string));
            count += 1;
            if text.len() > MOST_TEXT {
                return too_long(lane);
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let bytes = bytes_of::<Printed>(1).saturating_add(text.len() as u64);
        // The text stays when the range is over, so its bytes count until the launch ends.
        self.account.bounds.take(bytes, "what the kernel prints")?;
        let (block, warp) = (place.block, place.warp);
        self.tally.printed.push(Printed { block, warp, lane: lane as u32, text });
        Ok(count)
    }

    /// Reads the bytes from a generic address up to a zero byte, at most `most` of them.
    fn text(
        &mut self,
        scratch: &Scratch<'_>,
        place: &Place,
        lane: usize,
        address: u64,
        most: usize,
    ) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < most {
            let address = address.wrapping_add(text.len() as u64);
            match self.value(scratch, place, lane, address, 1)? as u8 {
                0 => return Ok(text),
                _ if text.len() == MOST_TEXT => return too_long(lane),
                byte => text.push(byte),
            }
        }
        Ok(text)
    }

    /// Reads an aligned value of up to eight bytes at a generic address.
    fn value(
        &mut self,
        scratch: &Scratch<'_>,
        place: &Place,
        lane: usize,
        address: u64,
        bytes: u32,
    ) -> Result<u64> {
        let words = match address {
            LOCAL_WINDOW..PARAMETER_WINDOW => {
                let offset = address - LOCAL_WINDOW;
                let first = local_word(scratch, offset, lane, bytes, "prints")?;
                let low = scratch.local[first] >> (8 * (offset % 4));
                [low, if bytes == 8 { scratch.local[first + 32] } else { 0 }]
            }
            SHARED_WINDOW..LOCAL_WINDOW | PARAMETER_WINDOW..WINDOW_END => {
                let message = "prints what lies in shared memory or among the parameters, which is not supported";
                return fault(ReportKind::Call, 1 << lane, message.to_string());
            }
            _ => {
                let [low, high, ..] = self.read(place, Order::Weak, address, bytes, lane)?;
                [low, high]
            }
        };
        let value = u64::from(words[0]) | u64::from(words[1]) << 32;
        Ok(if bytes == 8 { value } else { value & ((1 << (8 * bytes)) - 1) })
    }
}

#[cold]
fn too_long<T>(lane: usize) -> Result<T> {
    let message = format!("prints more than {MOST_TEXT} bytes at once");
    fault(ReportKind::Call, 1 << lane, message)
}

/// Returns an argument of up to eight bytes from a lane's frame.
fn in_frame(scratch: &Scratch<'_>, lane: usize, frame: u64, passed: Passed) -> u64 {
    let first = ((frame + u64::from(passed.offset)) / 4) as usize * 32 + lane;
    let word = |i: usize| u64::from(scratch.local.get(first + 32 * i).copied().unwrap_or_default());
    word(0) | if passed.bytes == 8 { word(1) << 32 } else { 0 }
}
