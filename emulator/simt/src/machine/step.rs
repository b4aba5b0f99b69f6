//! Executes one instruction of a warp, by the `match` that the table of instructions generates.

use super::access::copy::Copy;
use super::access::matrix::{Rows, Where};
use super::access::surface::Surface;
use super::access::{atomic, mbarrier};
use super::arithmetic::{convert, float, integer, moves, ternary};
use super::lanes::{self, gathered};
use super::matrix::together;
use super::state::{Lanes, Next, Place, Registers, Run, Scratch};
use crate::isa::{Op, Vector, instruction_table};
use crate::report::Result;

/// Generates the functions that execute an instruction. The arm of a row calls the row's executor,
/// with the arguments that the row's section adds.
macro_rules! dispatch {
    ($($section:ident { $(
        $(#[$doc:meta])*
        $name:ident $($opcode:literal)+ {
            $($attribute:ident: $attribute_type:ty),*;
            $($read:ident: $read_type:ty $(= $read_bank:expr)?),*;
            $($write:ident: $write_type:ty $(= $write_bank:expr)?),*
        } $class:expr $(, $access:expr)?; $($executor:ident)::+ ($($argument:expr),*);
    )* })*) => {
        /// Executes `op` in the `active` lanes and returns true, if it works on registers alone.
        #[expect(unused_variables, reason = "fields of the instructions that are not")]
        pub(crate) fn compute(r: &mut Registers, op: &Op, active: u32) -> bool {
            match *op { $($(
                Op::$name { $($attribute,)* $($read,)* $($write,)* } => {
                    computing!($section r active, $($executor)::+ ($($argument),*))
                }
            )*)* }
            true
        }

        impl Run<'_> {
            /// Executes `op` in the lanes `at.active`.
            #[expect(unused_variables, reason = "fields of those that `compute` executes")]
            pub(crate) fn execute(
                &mut self,
                r: &mut Registers,
                scratch: &mut Scratch<'_>,
                place: &Place,
                at: Lanes,
                op: &Op,
            ) -> Result<Next> {
                match *op { $($(
                    Op::$name { $($attribute,)* $($read,)* $($write,)* } => {
                        executing!(
                            $section self r scratch place at op,
                            $($executor)::+ ($($argument),*)
                        )
                    }
                )*)* }
            }
        }
    };
}

macro_rules! computing {
    (computing $r:ident $active:ident, $($executor:ident)::+ ($($argument:expr),*)) => {
        $($executor)::+($r, $($argument,)* $active)
    };
    ($($other:tt)*) => { return false };
}

macro_rules! executing {
    (computing $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident, $($_:tt)*) => {{
        compute($r, $op, $at.active);
        Ok(Next::Step)
    }};
    (voting $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $($executor:ident)::+ ($mask:expr $(, $argument:expr)*)) => {{
        if !gathered($r.words($mask), $at)? {
            return Ok(Next::Gather);
        }
        $($executor)::+($r, $mask, $($argument,)* $at.active);
        Ok(Next::Step)
    }};
    (flowing $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $($executor:ident)::+ ($($argument:expr),*)) => {
        Ok($($executor)::+($($argument),*))
    };
    (together $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $executor:ident ($($argument:expr),*)) => {{
        if !together($at)? {
            return Ok(Next::Gather);
        }
        $run.$executor($r, $scratch, $place, $($argument),*)?;
        Ok(Next::Step)
    }};
    (moving $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $executor:ident ($($argument:expr),*)) => {{
        $run.$executor($r, $scratch, $place, $($argument,)* $at.active)?;
        Ok(Next::Step)
    }};
    (fetching $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $executor:ident ($($argument:expr),*)) => {{
        $run.$executor($r, $place, $($argument,)* $at.active)?;
        Ok(Next::Step)
    }};
    (stepping $run:ident $r:ident $scratch:ident $place:ident $at:ident $op:ident,
        $executor:ident ($($argument:expr),*)) => {
        $run.$executor($r, $scratch, $place, $at, $($argument),*)
    };
}

instruction_table!(dispatch);
