//! Links kernels with the functions that they call.
//!
//! A kernel's code begins with its functions, each after the functions that it calls. The emulator
//! always runs the path with the lowest instruction first, so it runs the innermost call, and lanes
//! converge where that call returns. Each function has separate registers. Only a call that may
//! lead back to its caller saves the caller's registers. Tested by `cases/calls.ptx` and
//! `suite/programs.rs`.

use std::collections::HashMap;

use super::reuse::place;
use crate::isa::{
    self, Bank, Callee, Instruction, Kernel, Op, Passed, Preset, Saved, SharedVariable, Slot,
    System,
};
use crate::parse::body::slots::{Late, Shared};
use crate::parse::body::unit::{Function, MOST_SHARED, ParseError, Unit};
use crate::parse::source::cursor::Parsed;
use crate::parse::source::lexer::show;

/// The limit for all kernels of a module together: of instructions in functions, which each kernel
/// copies, plus functions that a pointer may point to.
const MOST_LINKED: usize = 1 << 20;

/// Links the kernels of a module, one after the other.
#[derive(Debug)]
pub(super) struct Linker<'f> {
    functions: &'f [Function],
    /// The numbers of the functions whose addresses are taken and that can be linked.
    pointed: Vec<u32>,
    linked: usize,
    /// True if kernels save the names of variables.
    named: bool,
}

/// The functions that a kernel reaches, each after the functions that it calls, and the component
/// of each: functions that call each other share a component.
#[derive(Debug, Default)]
struct Reached {
    order: Vec<u32>,
    components: HashMap<u32, usize>,
}

/// The places in the kernel where the parts of a unit begin.
struct Begin {
    code: u32,
    calls: usize,
    slots: [u32; 3],
}

impl<'f> Linker<'f> {
    pub(super) fn new(functions: &'f [Function], mut pointed: Vec<u32>, named: bool) -> Self {
        pointed.sort_unstable();
        pointed.dedup();
        let mut linker = Linker { functions, pointed: Vec::new(), linked: 0, named };
        pointed.retain(|&number| linker.unit(number).is_some());
        linker.pointed = pointed;
        linker
    }

    /// Returns the kernel, linked with all that it calls.
    pub(super) fn link(&mut self, unit: Unit) -> Result<Kernel, ParseError> {
        let line = unit.kernel.places.first().map_or(1, |place| place.line);
        let blame = |message: String| ParseError { line, message };
        let (mut placed, mut dynamic_align) = (unit.placed.clone(), unit.dynamic_align);
        let (kernel, late) = if unit.kernel.calls.is_empty() {
            (unit.kernel, unit.late)
        } else {
            let reached = self.reached(&unit.kernel)?;
            let units = reached.order.iter().filter_map(|&number| self.unit(number));
            dynamic_align = units.fold(dynamic_align, |align, unit| align.max(unit.dynamic_align));
            self.join(unit, &reached).map_err(blame)?
        };
        let mut kernel = finish(kernel, &late, &mut placed, dynamic_align).map_err(blame)?;
        if !self.named {
            kernel.variables.clear();
        }
        Ok(kernel)
    }

    /// Returns a function, or `None` if it cannot be linked.
    fn unit(&self, number: u32) -> Option<&'f Unit> {
        self.functions.get(number as usize)?.unit.as_ref()?.as_ref().ok()
    }

    /// Joins the code of the functions and, after it, the code of the kernel.
    fn join(&self, unit: Unit, reached: &Reached) -> Parsed<(Kernel, Vec<(usize, Late)>)> {
        let mut numbers = reached.order.clone();
        numbers.sort_unstable();
        let index_of = |number: u32| numbers.binary_search(&number).unwrap_or_default() as u32;
        let mut late = Vec::new();
        let mut functions = vec![isa::Function::default(); numbers.len()];
        let mut kernel = Kernel {
            code: Vec::new(),
            places: Vec::new(),
            opcodes: Vec::new(),
            presets: Vec::new(),
            registers: Vec::new(),
            calls: Vec::new(),
            slots: [0; 3],
            ..unit.kernel.clone()
        };
        for &number in &reached.order {
            let Some(unit) = self.unit(number) else { continue };
            let begin = append(&mut kernel, unit, &mut late)?;
            let ends = kernel.slots;
            let frame = kernel.presets.iter_mut().rev().find_map(|preset| match preset {
                Preset::Frame { slot } => Some(*slot),
                _ => None,
            });
            let (frame, index) = (frame.unwrap_or_default(), index_of(number));
            let frame_bytes = unit.kernel.local_bytes.next_multiple_of(16);
            for instruction in &mut kernel.code[begin.code as usize..] {
                if let Op::Return { function } = &mut instruction.op {
                    *function = index;
                }
            }
            let component = reached.components.get(&number);
            let comes_back = |to: &u32| reached.components.get(to) == component;
            let saved = Saved {
                begins: begin.slots.map(|slot| slot as Slot),
                ends: ends.map(|slot| slot as Slot),
            };
            let pointers =
                kernel.calls[begin.calls..].iter().any(|call| call.callee == Callee::Pointer);
            let pointer_comes_back = pointers && self.pointed.iter().any(comes_back);
            for call in &mut kernel.calls[begin.calls..] {
                let may_come_back = match call.callee {
                    Callee::Function(callee) => comes_back(&callee),
                    Callee::Pointer => pointer_comes_back,
                    Callee::System(_) => false,
                };
                call.saved = may_come_back.then_some(saved);
                (call.frame, call.frame_bytes) = (Some(frame), frame_bytes);
            }
            functions[index as usize] = isa::Function {
                name: self.functions[number as usize].name.clone(),
                number,
                entry: begin.code,
                frame,
                frame_bytes,
                params: unit.params.clone(),
                returns: unit.returns.clone(),
            };
        }
        kernel.functions = functions;
        let begin = append(&mut kernel, &unit, &mut late)?;
        kernel.entry = begin.code;
        // The kernel's only frame is at address 0.
        kernel.calls[begin.calls..]
            .iter_mut()
            .for_each(|call| call.frame_bytes = unit.kernel.local_bytes.next_multiple_of(16));
        for (pc, instruction) in kernel.code.iter().enumerate() {
            if let Op::Call { site, .. } = instruction.op {
                kernel.calls[site as usize].back = pc as u32 + 1;
            }
        }
        for call in &mut kernel.calls {
            if let Callee::Function(number) = call.callee {
                let function = &self.functions[number as usize];
                call.callee = match System::of(&function.name).filter(|_| function.unit.is_none()) {
                    Some(system) => Callee::System(system),
                    None => Callee::Function(index_of(number)),
                };
            }
        }
        Ok((kernel, late))
    }

    /// Returns the functions that a unit may call, each once.
    fn callees(&mut self, caller: &Kernel) -> Result<Vec<u32>, ParseError> {
        let (mut callees, mut pointers) = (Vec::new(), false);
        for (site, call) in caller.calls.iter().enumerate() {
            match call.callee {
                Callee::Function(number) => {
                    self.check(caller, site, number)?;
                    // System functions have no code.
                    callees.extend(self.functions[number as usize].unit.as_ref().map(|_| number));
                }
                Callee::Pointer => pointers = true,
                Callee::System(_) => {}
            }
        }
        if pointers {
            callees.extend(&self.pointed);
        }
        callees.sort_unstable();
        callees.dedup();
        self.linked += caller.code.len() + callees.len();
        if self.linked > MOST_LINKED {
            let message = format!(
                "the kernels of the module have more than {MOST_LINKED} instructions with the functions that each calls"
            );
            return Err(ParseError { line: line_of(caller, 0), message });
        }
        Ok(callees)
    }

    /// Checks that a call passes what the function takes, and that the function can be linked.
    fn check(&self, caller: &Kernel, site: usize, number: u32) -> Result<(), ParseError> {
        let function = &self.functions[number as usize];
        let name = show(&function.name);
        let mismatch = match &function.unit {
            Some(Ok(unit)) => caller.calls[site].mismatch(&unit.params, &unit.returns),
            Some(Err(ParseError { line, message })) => {
                let message = format!("in the function `{name}`, which is called: {message}");
                return Err(ParseError { line: *line, message });
            }
            None if let Some(system) = System::of(&function.name) => {
                let passed = |sizes: &[u32]| -> Vec<Passed> {
                    sizes.iter().map(|&bytes| Passed { offset: 0, bytes }).collect()
                };
                let (params, returns) = system.signature();
                caller.calls[site].mismatch(&passed(params), &passed(returns))
            }
            None => {
                let message = match &*function.name {
                    "malloc" | "free" => format!(
                        "`{name}` in a kernel is not supported: there is no heap, so allocate a buffer before the launch"
                    ),
                    _ => {
                        format!("the function `{name}` is declared, and not defined in the module")
                    }
                };
                return Err(ParseError { line: line_of(caller, site), message });
            }
        };
        match mismatch {
            None => Ok(()),
            Some(what) => {
                let message = format!("the call of `{name}` {what}");
                Err(ParseError { line: line_of(caller, site), message })
            }
        }
    }

    /// Finds strongly connected components in the required order (Tarjan, 1972).
    fn reached(&mut self, kernel: &Kernel) -> Result<Reached, ParseError> {
        #[derive(Clone, Copy)]
        struct Visit {
            index: usize,
            low: usize,
        }
        let mut reached = Reached::default();
        let mut visits: HashMap<u32, Visit> = HashMap::new();
        let mut stack: Vec<u32> = Vec::new();
        // For each function being visited: its callees, and the number of them visited so far.
        let mut open = vec![(None, self.callees(kernel)?, 0)];
        while let Some((caller, callees, next)) = open.last_mut() {
            let caller = *caller;
            if let Some(&callee) = callees.get(*next) {
                *next += 1;
                match visits.get(&callee) {
                    None => {
                        let index = visits.len();
                        visits.insert(callee, Visit { index, low: index });
                        stack.push(callee);
                        let Some(unit) = self.unit(callee) else { continue };
                        let callees = self.callees(&unit.kernel)?;
                        open.push((Some(callee), callees, 0));
                    }
                    Some(&Visit { index, .. }) if !reached.components.contains_key(&callee) => {
                        if let Some(visit) = caller.and_then(|caller| visits.get_mut(&caller)) {
                            visit.low = visit.low.min(index);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            open.pop();
            let Some(number) = caller else { continue };
            let Some(&Visit { index, low }) = visits.get(&number) else { continue };
            if let Some(visit) = open.last().and_then(|(above, ..)| visits.get_mut(&(*above)?)) {
                visit.low = visit.low.min(low);
            }
            if low == index {
                while let Some(member) = stack.pop() {
                    reached.components.insert(member, index);
                    reached.order.push(member);
                    if member == number {
                        break;
                    }
                }
            }
        }
        Ok(reached)
    }
}

/// Appends a unit to a kernel.
fn append(kernel: &mut Kernel, unit: &Unit, late: &mut Vec<(usize, Late)>) -> Parsed<Begin> {
    let from = &unit.kernel;
    let begin =
        Begin { code: kernel.code.len() as u32, calls: kernel.calls.len(), slots: kernel.slots };
    let most = Slot::MAX;
    kernel.slots = std::array::from_fn(|i| begin.slots[i] + from.slots[i]);
    if kernel.slots.into_iter().any(|count| count > most.into()) {
        return Err(format!(
            "the kernel and what it calls have more than {most} registers of one size"
        ));
    }
    let moved = |bank: Bank, slot: &mut Slot| *slot += begin.slots[bank as usize] as Slot;

    kernel.code.extend(from.code.iter().map(|&instruction| -> Instruction {
        let mut instruction = instruction;
        instruction.each_slot(&mut |_, bank, slot| moved(bank, slot));
        match &mut instruction.op {
            Op::Branch { target, .. } => *target += begin.code,
            Op::Call { site, .. } => *site += begin.calls as u32,
            _ => {}
        }
        instruction
    }));
    kernel.places.extend_from_slice(&from.places);
    kernel.opcodes.extend_from_slice(&from.opcodes);
    kernel.calls.extend_from_slice(&from.calls);
    let presets = kernel.presets.len();
    late.extend(unit.late.iter().map(|(preset, late)| (presets + preset, late.clone())));
    kernel.presets.extend(from.presets.iter().map(|&preset| {
        let mut preset = preset;
        let (bank, slot) = place(&mut preset);
        moved(bank, slot);
        preset
    }));
    kernel.registers.extend(from.registers.iter().cloned().map(|mut register| {
        moved(register.bank, &mut register.slot);
        register.live = register.live.start + begin.code..register.live.end + begin.code;
        register
    }));
    Ok(begin)
}

/// Places shared variables that only functions use, and then dynamic shared memory.
fn finish(
    mut kernel: Kernel,
    late: &[(usize, Late)],
    placed: &mut HashMap<usize, u32>,
    dynamic_align: u32,
) -> Parsed<Kernel> {
    for (preset, late) in late {
        let Late::Shared(Shared { id, align, bytes, name }) = late else { continue };
        let start = match placed.get(id) {
            Some(&start) => start,
            None => {
                let offset = kernel.static_shared.next_multiple_of(*align);
                let end = offset.checked_add(*bytes).filter(|&end| end <= MOST_SHARED);
                kernel.static_shared = end.ok_or_else(|| {
                    let name = show(name);
                    format!("with `{name}` the variables of this space take more than {MOST_SHARED} bytes")
                })?;
                placed.insert(*id, offset);
                let (name, bytes) = (name.clone(), *bytes);
                kernel.variables.push(SharedVariable { name, offset, bytes });
                offset
            }
        };
        add(&mut kernel.presets[*preset], start);
    }
    kernel.dynamic_shared = kernel.static_shared.next_multiple_of(dynamic_align);
    for (preset, late) in late {
        if matches!(late, Late::Dynamic) {
            add(&mut kernel.presets[*preset], kernel.dynamic_shared);
        }
    }
    Ok(kernel)
}

/// Adds the start of a variable to the value of a preset.
fn add(preset: &mut Preset, start: u32) {
    match preset {
        Preset::Word { value, .. } => *value = value.wrapping_add(start),
        Preset::Long { value, .. } => *value = value.wrapping_add(start.into()),
        _ => {}
    }
}

/// Returns the line of a call.
fn line_of(caller: &Kernel, site: usize) -> u32 {
    let at = |op: &Op| matches!(op, Op::Call { site: number, .. } if *number as usize == site);
    let pc = caller.code.iter().position(|instruction| at(&instruction.op)).unwrap_or_default();
    caller.places.get(pc).map_or(1, |place| place.line)
}
