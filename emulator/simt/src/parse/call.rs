//! `call`: of a function by its name, or through a register that holds its address.
//!
//! What is handed over lies in the frames, local memory of each thread: a call copies it from the
//! caller's to the callee's, and a return back.

use crate::isa::{Call, Callee, Op, Order, Passed, Space};
use crate::parse::body::names::Named;
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::body::unit::{Place, VariableSpace};
use crate::parse::source::lexer::show;
use crate::parse::source::number::Number;
use crate::parse::source::statement::Atom;
use crate::parse::source::types::{Class, Typed, U64, unsigned};

impl<'s> Body<'_, 's> {
    /// The rest of `call.uni (result), name, (argument, %r1), prototype;` behind the opcode.
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
            // The name of a prototype, or of a list of targets: each call is checked when it is
            // executed.
            if more {
                self.context.cursor.name()?;
            }
        }
        self.context.cursor.expect(b';')?;
        let (frame, frame_bytes, kept, back) = (None, 0, None, 0);
        self.calls.push(Call { callee, arguments, returns, frame, frame_bytes, kept, back });
        Ok(Op::Call { site: self.calls.len() as u32 - 1, target })
    }

    /// Names and numbers up to the closing bracket.
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

    /// Where an argument lies in the frame: that of a register is put there.
    fn argument(&mut self, atom: Atom<'s>) -> Result<Passed, String> {
        let (typed, slot) = match atom {
            Atom::Number(Number::Integer(value)) => {
                // Of four bytes, as long as a type is not seen.
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

    /// Where a result is going to lie in the frame: that for a register is taken from there.
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

    /// Puts a register into the frame.
    pub(super) fn store_to_frame(&self, typed: Typed, slot: u16, offset: u32) -> Op {
        let (space, order, count, wide) = (Space::Local, Order::Weak, 1, typed.ty.is_wide());
        let address = self.in_frame(offset.into());
        Op::Store { space, order, ty: unsigned(typed.ty), count, wide, a: [slot; 4], address }
    }

    /// Takes a register from the frame.
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
