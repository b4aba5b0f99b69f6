//! Declarations: registers, variables in the state spaces, and pragmas.

use super::context::Context;
use super::names::{Named, Register};
use super::slots::Shared;
use super::state::Body;
use super::unit::{MOST_LOCAL, MOST_SHARED, Place, PlacedAt, Variable, VariableSpace};
use crate::isa::SharedVariable;
use crate::parse::source::cursor::Cursor;
use crate::parse::source::lexer::{Kind, show};
use crate::parse::source::types::{self, Class};

/// The most registers that one `.reg` may declare at once.
const MOST_IN_RANGE: u32 = 1 << 20;

impl<'s> Context<'s> {
    /// Reads the rest of `.shared .align 4 .b8 name[128];` after the state space.
    pub(crate) fn variables(&mut self, space: VariableSpace, external: bool) -> Result<(), String> {
        let align = self.cursor.alignment()?;
        let written = self.cursor.directive()?;
        let typed = types::declared(written)
            .ok_or_else(|| format!("a variable of type `.{written}` is not supported"))?;
        let align = align.unwrap_or(typed.bytes());
        loop {
            let name = self.cursor.name()?;
            let bytes = self.cursor.size(typed.bytes())?;
            if bytes.is_some() == external {
                return Err("an `.extern` variable, and no other, has no size".to_string());
            }
            self.names.declare(name, Named::Variable(self.variables.len()))?;
            let id = self.next_id();
            self.variables.push(Variable { space, align, bytes, id });
            if self.cursor.accept(b';')? {
                return Ok(());
            }
            self.cursor.expect(b',')?;
        }
    }

    /// Reads the rest of `.pragma "nounroll";`, a hint that does not change results.
    pub(crate) fn pragma(&mut self) -> Result<(), String> {
        self.cursor.text()?;
        while self.cursor.accept(b',')? {
            self.cursor.text()?;
        }
        self.cursor.expect(b';')
    }
}

impl Cursor<'_> {
    /// Reads `.align 16` if it is next.
    pub(crate) fn alignment(&mut self) -> Result<Option<u32>, String> {
        if !self.accept_directive("align")? {
            return Ok(None);
        }
        let align = self.count(1 << 12)?;
        if align.is_power_of_two() {
            return Ok(Some(align));
        }
        Err(format!("an alignment of {align} is no power of two"))
    }

    /// Reads the dimensions after a variable's name. Returns its size in bytes, or `None` for `[]`.
    pub(crate) fn size(&mut self, element: u32) -> Result<Option<u32>, String> {
        let mut bytes = element;
        while self.accept(b'[')? {
            if self.accept(b']')? {
                return Ok(None);
            }
            let count = if self.accept_word("WARP_SZ")? { 32 } else { self.count(u32::MAX)? };
            self.expect(b']')?;
            bytes = bytes.checked_mul(count).ok_or("a variable of more than 4 GB")?;
        }
        Ok(Some(bytes))
    }
}

impl<'s> Body<'_, 's> {
    /// Reads the rest of `.reg .b32 %r<38>, %x;` after `.reg`.
    pub(crate) fn registers(&mut self) -> Result<(), String> {
        let written = self.context.cursor.directive()?;
        let class = match (written, types::declared(written)) {
            ("pred", _) => Class::Predicate,
            (_, Some(typed)) if typed.bytes() > 1 => Class::Data(typed),
            _ => return Err(format!("registers of type `.{written}` are not supported")),
        };
        loop {
            let token = self.context.cursor.next()?;
            if token.kind != Kind::Word || token.text.contains('.') {
                return Err(format!("a register's name was expected, not {}", token.quoted()));
            }
            let name = token.text;
            if self.context.cursor.accept(b'<')? {
                let count = self.context.cursor.count(MOST_IN_RANGE)?;
                self.context.cursor.expect(b'>')?;
                self.context.names.declare_range(name, class, count)?;
            } else {
                let slot = self.slots.register(class, name)?;
                self.context.names.declare(name, Named::Register(Register { class, slot }))?;
            }
            if self.context.cursor.accept(b';')? {
                return Ok(());
            }
            self.context.cursor.expect(b',')?;
        }
    }

    /// Returns the place of a variable, which is assigned at its first use.
    pub(crate) fn place(&mut self, name: &str, index: usize) -> Result<PlacedAt, String> {
        let Variable { space, align, bytes, id } = self.context.variables[index];
        let (used, limit) = match space {
            VariableSpace::Shared => (&mut self.unit.kernel.static_shared, MOST_SHARED),
            VariableSpace::Local | VariableSpace::Param => {
                (&mut self.unit.kernel.local_bytes, MOST_LOCAL)
            }
            VariableSpace::Global | VariableSpace::Const => {
                let place = Place::Global(bytes.unwrap_or_default());
                return Ok(PlacedAt { space, place });
            }
        };
        let Some(bytes) = bytes else {
            self.unit.dynamic_align = self.unit.dynamic_align.max(align);
            return Ok(PlacedAt { space, place: Place::Dynamic });
        };
        if space == VariableSpace::Shared && self.frame.is_some() {
            let variable = Shared { id, align, bytes, name: name.into() };
            return Ok(PlacedAt { space, place: Place::Linked(variable) });
        }
        if let Some(&offset) = self.unit.placed.get(&id) {
            return Ok(PlacedAt { space, place: Place::At(offset) });
        }
        if space == VariableSpace::Param {
            let offset = self.room(bytes, align)?;
            self.unit.placed.insert(id, offset);
            return Ok(PlacedAt { space, place: Place::At(offset) });
        }
        let offset = used.next_multiple_of(align);
        let end = offset.checked_add(bytes).filter(|&end| end <= limit).ok_or_else(|| {
            format!(
                "with `{}` the variables of this space take more than {limit} bytes",
                show(name)
            )
        })?;
        *used = end;
        self.unit.placed.insert(id, offset);
        if space == VariableSpace::Shared && self.context.named {
            self.unit.kernel.variables.push(SharedVariable { name: name.into(), offset, bytes });
        }
        Ok(PlacedAt { space, place: Place::At(offset) })
    }
}
