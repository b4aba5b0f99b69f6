//! Functions, `.func`: their heads, their aliases, and their parameters in frames.

use std::sync::Arc;

use super::head::Head;
use crate::isa::Callee;
use crate::parse::body::context::Context;
use crate::parse::body::names::Named;
use crate::parse::body::state::Body;
use crate::parse::body::unit::{
    Formal, Function, ParseError, Signature, Unit, Variable, VariableSpace,
};
use crate::parse::source::cursor::Cursor;
use crate::parse::source::lexer::{Kind, show};
use crate::parse::source::types::{self, Class};

impl<'s> Context<'s> {
    /// Reads the rest of a `.func`: a declaration, or a definition, for which it calls `finish`.
    pub(super) fn function(&mut self, finish: fn(&mut Unit)) -> Result<(), String> {
        let begin = self.cursor.clone();
        let (variables, unrounded) = (self.variables.len(), self.unrounded.len());
        let read = match self.signature() {
            // Declared before the body, since the function may call itself.
            Ok(signature) => {
                self.number_of(signature.name)?;
                self.names.open()?;
                self.body(signature)
            }
            Err(message) => Err(message),
        };
        self.names.close_all_but_first();
        self.variables.truncate(variables);
        let (name, unit) = match read {
            Ok((_, None)) => return Ok(()),
            Ok((name, Some(mut unit))) => {
                finish(&mut unit);
                (name, Ok(unit))
            }
            Err(message) => {
                // If its end is found, the error concerns only its callers.
                let (name, end) = end_of_function(begin).ok_or_else(|| message.clone())?;
                let (line, message) = self.cursor.error(message);
                self.cursor = end;
                self.unrounded.truncate(unrounded);
                (name, Err(ParseError { line, message }))
            }
        };
        let number = self.number_of(name)?;
        match &mut self.functions[number].unit {
            Some(_) => Err(format!("`{}` is declared twice", show(name))),
            none => {
                *none = Some(unit);
                Ok(())
            }
        }
    }

    /// Reads the rest of `.alias another, name;`.
    pub(super) fn alias(&mut self) -> Result<(), String> {
        let another = self.cursor.name()?;
        self.cursor.expect(b',')?;
        let name = self.cursor.name()?;
        self.cursor.expect(b';')?;
        let [another_number, number] = [another, name].map(|name| self.names.declared(name));
        match (another_number, number) {
            (Some(Named::Function(another)), Some(Named::Function(number)))
                if self.functions[another].unit.is_none()
                    && self.functions[number].unit.is_some() =>
            {
                self.functions[another].alias = Some(number);
                Ok(())
            }
            _ => Err(format!(
                "`.alias` gives a function that is defined another name, which is declared: `{}` is no such name, or `{}` no \
                 such function",
                show(another),
                show(name)
            )),
        }
    }

    /// Returns the number of the function with a name, which it declares if needed.
    fn number_of(&mut self, name: &'s str) -> Result<usize, String> {
        if let Some(Named::Function(number)) = self.names.declared(name) {
            return Ok(number);
        }
        let number = self.functions.len();
        self.names.declare(name, Named::Function(number))?;
        self.functions.push(Function { name: Arc::from(name), unit: None, alias: None });
        Ok(number)
    }

    /// Reads what follows a function's head: its body, if it has one.
    fn body(&mut self, signature: Signature<'s>) -> Result<(&'s str, Option<Unit>), String> {
        let mut cursor = self.cursor.clone();
        if !has_body(&mut cursor)? {
            self.cursor = cursor;
            return Ok((signature.name, None));
        }
        self.attributes()?;
        let name = signature.name;
        Body::function(signature, self).map(|unit| (name, Some(unit)))
    }

    /// Reads `(.param .b32 result) name (.param .b64 a, .reg .u32 b)`.
    fn signature(&mut self) -> Result<Signature<'s>, String> {
        let returns = self.formals()?;
        let name = self.cursor.name()?;
        let params = self.formals()?;
        Ok(Signature { name, returns, params })
    }

    /// Reads the parameters or results of a function in brackets, if there are any.
    fn formals(&mut self) -> Result<Vec<Formal<'s>>, String> {
        let cursor = &mut self.cursor;
        let mut formals = Vec::new();
        if !cursor.accept(b'(')? || cursor.accept(b')')? {
            return Ok(formals);
        }
        loop {
            let formal = if cursor.accept_directive("reg")? {
                let written = cursor.directive()?;
                let typed = types::declared(written).filter(|typed| typed.bytes() > 1);
                let typed = typed.ok_or_else(|| {
                    format!("registers of type `.{written}` are not handed to functions")
                })?;
                let (bytes, name) = (typed.bytes(), cursor.name()?);
                Formal { name, bytes, align: bytes, register: Some(typed) }
            } else {
                let mut head = Head::default();
                let name = head.param(cursor)?;
                let (bytes, align) =
                    head.params.first().map_or((0, 1), |one| (one.bytes, one.align));
                Formal { name, bytes, align, register: None }
            };
            formals.push(formal);
            if cursor.accept(b')')? {
                return Ok(formals);
            }
            cursor.expect(b',')?;
        }
    }

    /// Reads the directives between a function's parameters and its body.
    fn attributes(&mut self) -> Result<(), String> {
        while !self.cursor.peek()?.is(b'{') {
            match self.cursor.directive()? {
                "noreturn" => {}
                "pragma" => self.pragma()?,
                other => {
                    return Err(format!("`.{other}` is not supported before a function's body"));
                }
            }
        }
        Ok(())
    }
}

impl Context<'_> {
    /// Replaces aliases in calls by the functions that they name. A pointer to an alias does not
    /// point to a function.
    pub(super) fn use_aliases(&mut self, kernels: &mut [(Arc<str>, Result<Unit, ParseError>)]) {
        let aliases: Vec<Option<usize>> =
            self.functions.iter().map(|function| function.alias).collect();
        if aliases.iter().all(Option::is_none) {
            return;
        }
        let functions = self.functions.iter_mut().filter_map(|function| function.unit.as_mut());
        let kernels = kernels.iter_mut().map(|(_, unit)| unit);
        let units = functions.chain(kernels).filter_map(|unit| unit.as_mut().ok());
        for call in units.flat_map(|unit| &mut unit.kernel.calls) {
            if let Callee::Function(number) = &mut call.callee
                && let Some(Some(alias)) = aliases.get(*number as usize)
            {
                *number = *alias as u32;
            }
        }
    }
}

impl<'s> Body<'_, 's> {
    /// Declares a parameter or result of a function. Returns its place in the frame, where the
    /// caller stores and finds it.
    pub(super) fn formal(&mut self, formal: &Formal<'s>) -> Result<u32, String> {
        let Formal { name, bytes, align, register } = *formal;
        let named = match register {
            Some(typed) => {
                let class = Class::Data(typed);
                let slot = self.slots.register(class, name)?;
                Named::Register(crate::parse::body::names::Register { class, slot })
            }
            None => {
                let id = self.context.next_id();
                let space = VariableSpace::Param;
                self.context.variables.push(Variable { space, align, bytes: Some(bytes), id });
                Named::Variable(self.context.variables.len() - 1)
            }
        };
        self.context.names.declare(name, named)?;
        let offset = self.room(bytes, align)?;
        if let Named::Variable(index) = named {
            self.unit.placed.insert(self.context.variables[index].id, offset);
        }
        Ok(offset)
    }
}

/// Skips to a function's body, or past the semicolon that replaces it. Returns true before a body.
fn has_body(cursor: &mut Cursor) -> Result<bool, String> {
    let mut in_pragma = false;
    loop {
        let token = cursor.peek()?;
        match token.kind {
            Kind::Mark(b'{') => return Ok(true),
            Kind::Mark(b';') if !in_pragma => return cursor.next().map(|_| false),
            Kind::Mark(b';') => in_pragma = false,
            _ if token.ends_directive() => return Err("a semicolon is missing".to_string()),
            Kind::Directive => in_pragma = token.text == ".pragma",
            _ => {}
        }
        cursor.next()?;
    }
}

/// Returns the name of a function and the place after its end, given the place after `.func`.
fn end_of_function(mut cursor: Cursor<'_>) -> Option<(&str, Cursor<'_>)> {
    let mut end = || {
        if cursor.accept(b'(')? {
            cursor.skip_past(b')')?;
        }
        let name = cursor.name()?;
        if has_body(&mut cursor)? {
            cursor.skip_braces()?;
        }
        Ok::<_, String>(name)
    };
    end().ok().map(|name| (name, cursor))
}
