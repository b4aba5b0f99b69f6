//! Operands to slots: registers, special registers, immediates and addresses of variables.
//!
//! A decoder requests an operand by its type and gets a slot or an error that names the mismatch.
//! So the rules of PTX for types of registers are only in this file and in `source::types`.
//! Constants and special registers get slots, too, one for each value, which are filled when a warp
//! starts. Tested by `tests/suite/parser.rs`, `tests/suite/moves.rs`, `cases/refusals.ptx` and
//! `parse::tests`.

use super::names::{Named, Register};
use super::slots::Constant;
use super::special::{self, special};
use super::state::Body;
use super::unit::{Place, VariableSpace};
use crate::isa::{Address, Bank, Base, Binary, Guard, Op, Slot, Space, Type};
use crate::parse::source::cursor::Parsed;
use crate::parse::source::lexer::show;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{Class, Kind, Number, Typed, U32, U64};

impl<'s> Body<'_, 's> {
    /// Returns the register for a result of the type.
    pub(crate) fn destination(&mut self, operand: &Operand<'s>, typed: Typed) -> Parsed<Slot> {
        match *operand {
            Operand::Atom(Atom::Name(name)) => {
                let register = self.register(name)?;
                self.agree(name, register, typed)
            }
            _ => Err(format!("the destination must be a `.{}` register", typed.name)),
        }
    }

    /// Returns the slot of an operand that is read: a register or an immediate.
    pub(crate) fn source(&mut self, operand: &Operand<'s>, typed: Typed) -> Parsed<Slot> {
        match *operand {
            Operand::Atom(Atom::Name("WARP_SZ")) => self.immediate(Number::Integer(32), typed),
            Operand::Atom(Atom::Name(name)) => {
                if special(name).is_some() {
                    return Err(format!("`{name}` can only be moved and converted"));
                }
                let register = self.register(name)?;
                self.agree(name, register, typed)
            }
            Operand::Atom(Atom::Number(number)) => self.immediate(number, typed),
            _ => Err(format!("an operand of type `.{}` was expected", typed.name)),
        }
    }

    /// Returns a source of `mov`, `cvt` or `cvta`: also a special register or an address.
    pub(crate) fn source_or_place(&mut self, operand: &Operand<'s>, typed: Typed) -> Parsed<Slot> {
        let (name, offset) = match *operand {
            Operand::Atom(Atom::Name(name)) => (name, 0),
            Operand::Sum(name, offset) => (name, offset),
            _ => return self.source(operand, typed),
        };
        if name == "%gridid" && offset == 0 && typed.agrees_with(U64) {
            // The emulator runs one grid.
            return self.slots.constant(Constant::Long(0));
        }
        match special(name) {
            Some(which) if offset == 0 && typed.agrees_with(U32) => {
                self.slots.constant(Constant::Special(which))
            }
            Some(_) => Err(format!("`{name}` is a `.u32`, and `.{}` is asked for", typed.name)),
            None => match self.find(name)? {
                Named::Variable(index) => self.address_of(name, index, offset, typed),
                Named::Function(number) if typed.agrees_with(U64) && offset == 0 => {
                    let address = self.context.address_of_function(number);
                    self.slots.constant(Constant::Long(address))
                }
                Named::Param(number) if typed.kind != Kind::Float && typed.bytes() == 8 => {
                    let start = self.unit.kernel.params[number].offset.into();
                    self.slots.constant(Constant::Long(offset.wrapping_add(start) as u64))
                }
                Named::Param(_) => {
                    Err(format!("the address of `{}` is no `.{}`", show(name), typed.name))
                }
                _ => self.source(operand, typed),
            },
        }
    }

    /// Returns a source whose register may be wider than the type, with the register's bytes.
    pub(crate) fn source_or_wider(
        &mut self,
        operand: &Operand<'s>,
        typed: Typed,
    ) -> Parsed<(Slot, u32)> {
        match *operand {
            Operand::Atom(Atom::Name(name)) if special(name).is_none() => {
                self.register_or_wider(name, typed)
            }
            _ => Ok((self.source(operand, typed)?, typed.bytes())),
        }
    }

    /// Returns a destination whose register may be wider than the type, with the register's bytes.
    pub(crate) fn destination_or_wider(
        &mut self,
        operand: &Operand<'s>,
        typed: Typed,
    ) -> Parsed<(Slot, u32)> {
        match *operand {
            Operand::Atom(Atom::Name(name)) => self.register_or_wider(name, typed),
            _ => Err(format!("the destination must be a `.{}` register", typed.name)),
        }
    }

    fn register_or_wider(&mut self, name: &'s str, typed: Typed) -> Parsed<(Slot, u32)> {
        match self.register(name)? {
            Register { class: Class::Data(declared), slot } if typed.fits_in(declared) => {
                Ok((slot, declared.bytes()))
            }
            Register { class, .. } => Err(mismatch(name, class, typed.name)),
        }
    }

    pub(crate) fn atom(&mut self, atom: Atom<'s>, typed: Typed) -> Parsed<Slot> {
        self.source(&Operand::Atom(atom), typed)
    }

    /// Returns a predicate that is written.
    pub(crate) fn destination_predicate(&mut self, name: &'s str) -> Parsed<Slot> {
        match self.register(name)? {
            Register { class: Class::Predicate, slot } => Ok(slot),
            Register { class, .. } => Err(mismatch(name, class, "pred")),
        }
    }

    /// Returns a predicate that is read: a register, or an integer, where 0 is false.
    pub(crate) fn predicate(&mut self, operand: &Operand<'s>) -> Parsed<Slot> {
        match *operand {
            Operand::Atom(Atom::Name(name)) => self.destination_predicate(name),
            Operand::Atom(Atom::Number(Number::Integer(value))) => {
                self.slots.constant(Constant::Predicate(value != 0))
            }
            _ => Err("a predicate was expected".to_string()),
        }
    }

    /// Returns a predicate that may be negated.
    pub(crate) fn guard(&mut self, operand: &Operand<'s>) -> Parsed<Guard> {
        match *operand {
            Operand::Not(name) => {
                Ok(Guard { predicate: self.destination_predicate(name)?, negated: true })
            }
            _ => Ok(Guard { predicate: self.predicate(operand)?, negated: false }),
        }
    }

    /// Returns `[%rd1+8]` in a space. Shared and local memory also take 32-bit addresses.
    pub(crate) fn address(&mut self, operand: &Operand<'s>, space: Space) -> Parsed<Address> {
        let Operand::Address(base, offset) = *operand else {
            return Err("an address in brackets was expected".to_string());
        };
        let Atom::Name(name) = base else {
            return Err("an address that is a number is not supported".to_string());
        };
        match self.find(name)? {
            Named::Register(Register { class: class @ Class::Data(typed), slot })
                if typed.kind != Kind::Float =>
            {
                match (class.bank(), space) {
                    (Bank::Long, _) => Ok(Address { base: Base::Long(slot), offset }),
                    (Bank::Word, Space::Shared | Space::Local) if typed.bytes() == 4 => {
                        Ok(Address { base: Base::Word(slot), offset })
                    }
                    _ => Err(mismatch(name, class, "b64")),
                }
            }
            Named::Register(Register { class, .. }) => Err(mismatch(name, class, "b64")),
            Named::Variable(index) => {
                let place = self.place(name, index)?;
                match (place.space, space) {
                    (VariableSpace::Shared, Space::Shared)
                    | (VariableSpace::Local | VariableSpace::Param, Space::Local)
                    | (VariableSpace::Global, Space::Global | Space::Generic)
                    | (VariableSpace::Const, Space::Constant | Space::Generic) => {}
                    _ => return Err(format!("`{}` lies in another state space", show(name))),
                }
                match place.place {
                    Place::At(start) if space == Space::Local => {
                        Ok(self.in_frame(offset.wrapping_add(start.into())))
                    }
                    Place::At(start) => {
                        Ok(Address { base: Base::Zero, offset: offset.wrapping_add(start.into()) })
                    }
                    Place::Linked(variable) => {
                        let start = Constant::Shared { offset: 0, variable };
                        Ok(Address { base: Base::Long(self.slots.constant(start)?), offset })
                    }
                    Place::Global(variable) => {
                        let start = Constant::Global { variable, offset: 0 };
                        Ok(Address { base: Base::Long(self.slots.constant(start)?), offset })
                    }
                    Place::Dynamic => {
                        let start = Constant::Dynamic { offset: 0, wide: false };
                        Ok(Address { base: Base::Word(self.slots.constant(start)?), offset })
                    }
                }
            }
            Named::Param(number) if space == Space::Parameter => {
                let start = self.unit.kernel.params[number].offset.into();
                Ok(Address { base: Base::Zero, offset: offset.wrapping_add(start) })
            }
            named => Err(kind_error(name, named, "a register or variable")),
        }
    }

    pub(crate) fn register(&mut self, name: &'s str) -> Parsed<Register> {
        match self.find(name)? {
            Named::Register(register) => Ok(register),
            named => Err(kind_error(name, named, "a register")),
        }
    }

    pub(crate) fn find(&mut self, name: &str) -> Parsed<Named> {
        let found = self.context.names.find(name, &mut self.slots)?;
        if let Some(Named::Refused(index)) = found {
            return Err(self.context.refused[index].clone());
        }
        found.ok_or_else(|| match special(name) {
            Some(_) => format!("the special register `{name}` can only be read"),
            None => match special::unsupported(name) {
                Some(reason) => format!("the special register `{name}` is not supported: {reason}"),
                None => format!("`{}` is not declared", show(name)),
            },
        })
    }

    /// Returns the slot of an immediate, in the size of its type.
    pub(crate) fn immediate(&mut self, number: Number, typed: Typed) -> Parsed<Slot> {
        let bits = number.bits(typed).ok_or_else(|| {
            format!("the literal {number:?} does not go with the type `.{}`", typed.name)
        })?;
        self.slots.constant(if typed.ty.is_wide() {
            Constant::Long(bits)
        } else {
            Constant::Word(bits as u32)
        })
    }

    /// Returns the address of a variable in its space, as a constant.
    fn address_of(&mut self, name: &str, index: usize, offset: i64, typed: Typed) -> Parsed<Slot> {
        if typed.kind == Kind::Float || typed.bytes() < 4 {
            return Err(format!("the address of `{}` is no `.{}`", show(name), typed.name));
        }
        let place = self.place(name, index)?;
        let wide = typed.ty.is_wide();
        let constant = match place.place {
            Place::Dynamic => Constant::Dynamic { offset, wide },
            Place::Global(variable) if wide => Constant::Global { variable, offset },
            Place::Linked(variable) if wide => Constant::Shared { offset, variable },
            Place::At(start) if place.space != VariableSpace::Shared && self.frame.is_some() => {
                return self.address_in_frame(name, offset.wrapping_add(start.into()), wide);
            }
            Place::Linked(_) | Place::Global(_) => {
                return Err(format!("the address of `{}` has 64 bits", show(name)));
            }
            Place::At(start) => match offset.wrapping_add(start.into()) {
                address if wide => Constant::Long(address as u64),
                address => Constant::Word(address as u32),
            },
        };
        self.slots.constant(constant)
    }

    /// Returns a slot with an address in a frame, valid until the next instruction.
    fn address_in_frame(&mut self, name: &str, offset: i64, wide: bool) -> Parsed<Slot> {
        let Some(a) = self.frame.filter(|_| wide) else {
            return Err(format!("the address of `{}` has 64 bits", show(name)));
        };
        let (b, d) = (self.slots.constant(Constant::Long(offset as u64))?, self.sink(true)?);
        self.preceded_by.push(Op::Binary { op: Binary::Add, ty: Type::U64, d, a, b });
        Ok(d)
    }

    pub(crate) fn agree(&self, name: &str, register: Register, typed: Typed) -> Parsed<Slot> {
        match register.class {
            Class::Data(declared) if typed.agrees_with(declared) => Ok(register.slot),
            class => Err(mismatch(name, class, typed.name)),
        }
    }
}

fn mismatch(name: &str, class: Class, asked: &str) -> String {
    format!("`{}` is a `.{}` register, and `.{asked}` is asked for", show(name), class.name())
}

fn kind_error(name: &str, named: Named, asked: &str) -> String {
    let what = match named {
        Named::Register(_) => "a register",
        Named::Variable(_) => "a variable",
        Named::Param(_) => "a parameter",
        Named::Label(_) => "a label",
        Named::Kernel => "a kernel",
        Named::Function(_) => "a function",
        Named::Refused(_) => "not supported",
    };
    format!("`{}` is {what}, and {asked} is asked for", show(name))
}
