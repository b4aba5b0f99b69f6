//! `call`, to a function by its name or through a register with its address, and `brx.idx`, which
//! branches to one of several labels, as a `switch` does.
//!
//! Arguments and results are in frames, in the local memory of each thread. A call copies arguments
//! from the caller's frame to the callee's frame, and a return copies results back. `brx.idx`
//! becomes a comparison and a branch for each label, of which only the first pair is counted.

use crate::isa::{Call, Callee, Compare, Guard, Logic, Op, Order, Passed, Space, Type};
use crate::parse::body::names::Named;
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::body::unit::{Place, VariableSpace};
use crate::parse::source::lexer::show;
use crate::parse::source::statement::{Atom, Operand, Statement};
use crate::parse::source::types::{Class, Number, Typed, U32, U64, unsigned};

impl<'s> Body<'_, 's> {
    /// Reads the rest of `call.uni (result), name, (argument, %r1), prototype;` after the opcode.
    pub(super) fn call(&mut self) -> Result<Op, String> {
        let mut returns = Vec::new();
        if self.context.cursor.accept(b'(')? {
            for atom in self.list()? {
                returns.push(self.returned(atom)?);
            }
            self.context.cursor.expect(b',')?;
        }
        let name = self.context.cursor.name()?;
        let (callee, target) = match self.find(name)? {
            Named::Function(number) => (Callee::Function(number as u32), None),
            Named::Register(register) => {
                let slot = self.agree(name, register, U64)?;
                (Callee::Pointer, Some(slot))
            }
            _ => return Err(format!("`{}` is no function", show(name))),
        };
        let mut arguments = Vec::new();
        if self.context.cursor.accept(b',')? {
            let mut more = true;
            if self.context.cursor.accept(b'(')? {
                for atom in self.list()? {
                    arguments.push(self.argument(atom)?);
                }
                more = self.context.cursor.accept(b',')?;
            }
            // The name of a prototype or of a list of targets. Each call is checked when it is
            // executed.
            if more {
                self.context.cursor.name()?;
            }
        }
        self.context.cursor.expect(b';')?;
        // The linker knows the rest.
        let call = Call::new(callee, arguments, returns);
        self.unit.kernel.calls.push(call);
        Ok(Op::Call { site: self.unit.kernel.calls.len() as u32 - 1, target })
    }

    /// Reads names and numbers up to the closing bracket.
    fn list(&mut self) -> Result<Vec<Atom<'s>>, String> {
        let mut atoms = Vec::new();
        let cursor = &mut self.context.cursor;
        if cursor.accept(b')')? {
            return Ok(atoms);
        }
        loop {
            atoms.push(crate::parse::source::statement::atom(cursor)?);
            if cursor.accept(b')')? {
                return Ok(atoms);
            }
            cursor.expect(b',')?;
        }
    }

    /// Returns the place of an argument in the frame, after storing it there from a register.
    fn argument(&mut self, atom: Atom<'s>) -> Result<Passed, String> {
        let (typed, slot) = match atom {
            Atom::Number(Number::Integer(value)) => {
                // Four bytes, since no type is visible here.
                let slot = self.slots.constant(Constant::Word(value as u32))?;
                (crate::parse::source::types::B32, slot)
            }
            Atom::Number(number) => return Err(format!("{number:?} is no argument of a call")),
            Atom::Name(name) => match self.handed(name)? {
                Handed::Param(passed) => return Ok(passed),
                Handed::Register(typed, slot) => (typed, slot),
            },
        };
        let passed = self.temporary(typed)?;
        let op = self.store_to_frame(typed, slot, passed.offset);
        self.preceded_by.push(op);
        Ok(passed)
    }

    /// Returns the place of a result in the frame, from which a register loads it later.
    fn returned(&mut self, atom: Atom<'s>) -> Result<Option<Passed>, String> {
        let Atom::Name(name) = atom else { return Err("a number is no result".to_string()) };
        if name == "_" {
            return Ok(None);
        }
        let (typed, slot) = match self.handed(name)? {
            Handed::Param(passed) => return Ok(Some(passed)),
            Handed::Register(typed, slot) => (typed, slot),
        };
        let passed = self.temporary(typed)?;
        let op = self.load_from_frame(typed, slot, passed.offset);
        self.followed_by.push(op);
        Ok(Some(passed))
    }

    fn handed(&mut self, name: &'s str) -> Result<Handed, String> {
        match self.find(name)? {
            Named::Register(crate::parse::body::names::Register {
                class: Class::Data(typed),
                slot,
            }) => Ok(Handed::Register(typed, slot)),
            Named::Variable(index)
                if self.context.variables[index].space == VariableSpace::Param =>
            {
                let bytes = self.context.variables[index].bytes.unwrap_or_default();
                match self.place(name, index)?.place {
                    Place::At(offset) => Ok(Handed::Param(Passed { offset, bytes })),
                    _ => Err(format!("`{}` has no place", show(name))),
                }
            }
            _ => Err(format!("`{}` is not handed to functions", show(name))),
        }
    }

    fn temporary(&mut self, typed: Typed) -> Result<Passed, String> {
        let bytes = typed.bytes();
        Ok(Passed { offset: self.room(bytes, bytes)?, bytes })
    }

    /// Returns the instruction that stores a register to the frame.
    pub(super) fn store_to_frame(&self, typed: Typed, slot: u16, offset: u32) -> Op {
        let (space, order, count, wide) = (Space::Local, Order::Weak, 1, typed.ty.is_wide());
        let address = self.in_frame(offset.into());
        Op::Store { space, order, ty: unsigned(typed.ty), count, wide, a: [slot; 4], address }
    }

    /// Returns the instruction that loads a register from the frame.
    pub(super) fn load_from_frame(&self, typed: Typed, slot: u16, offset: u32) -> Op {
        let (space, order, count, wide) = (Space::Local, Order::Weak, 1, typed.ty.is_wide());
        let address = self.in_frame(offset.into());
        Op::Load { space, order, ty: unsigned(typed.ty), count, wide, d: [slot; 4], address }
    }
}

enum Handed {
    Param(Passed),
    Register(Typed, u16),
}

/// The most labels of a list.
const MOST_TARGETS: usize = 4096;

impl<'s> Body<'_, 's> {
    /// Reads the rest of `.branchtargets A, B;`. The label before it is the list's name.
    pub(super) fn targets(&mut self) -> Result<(), String> {
        let label = self.last_label.take().ok_or("`.branchtargets` needs a label before it")?;
        let mut targets = Vec::new();
        loop {
            if targets.len() == MOST_TARGETS {
                return Err(format!("a list of more than {MOST_TARGETS} labels"));
            }
            targets.push(self.context.cursor.name()?);
            if self.context.cursor.accept(b';')? {
                break;
            }
            self.context.cursor.expect(b',')?;
        }
        self.lists.insert(label, targets);
        Ok(())
    }

    /// Reads the rest of `brx.idx %r1, list;` and emits its comparisons and branches.
    pub(super) fn switch(
        &mut self,
        guard: Option<Guard>,
        statement: &Statement<'s>,
        line: u32,
    ) -> Result<(), String> {
        let [index, Operand::Atom(Atom::Name(list))] = statement.operands[..] else {
            return Err("it takes an index and the label of a list of labels".to_string());
        };
        let a = self.source(&index, U32)?;
        // A list can be used once, so that the code stays linear in the length of the source.
        let targets = self.lists.remove(list).ok_or_else(|| {
            format!("`{}` is no list of `.branchtargets` before it that is not used", show(list))
        })?;
        let opcode = self.context.opcode(statement.opcode);
        let [d, _] = self.scratch_predicates()?;
        let holds = Some(Guard { predicate: d, negated: false });
        let guarded = guard.map(|guard| (Logic::And, guard));
        let compare = |compare, b| Op::set_predicate(compare, Type::U32, d, guarded, [a, b]);
        for (number, target) in (0..).zip(&targets) {
            let b = self.slots.constant(Constant::Word(number))?;
            self.push(None, compare(Compare::Eq, b), line, &opcode)?;
            let branch = self.branch(target, false);
            self.push(holds, branch, line, &opcode)?;
        }
        let b = self.slots.constant(Constant::Word(targets.len() as u32))?;
        self.push(None, compare(Compare::Ge, b), line, &opcode)?;
        self.push(holds, Op::Trap {}, line, &opcode)
    }
}
