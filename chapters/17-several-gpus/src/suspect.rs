//! Three planted mistakes, and the sentence that reports each.

use std::time::Duration;

use linrec::Error;
use linrec::device::{Device, Group, Rank};
use ndarray::Array2;

use crate::mailbox::Mailboxes;

/// The mistakes, in the order of the page.
pub const NAMES: [&str; 3] = ["a receive too few", "mail_without_fence", "mail_of_any_epoch"];

/// Returns the report on one of [`NAMES`], or on the correct kernel of the last two by the name of
/// `mailbox`; `None` if nothing is wrong.
///
/// # Errors
///
/// Returns [`Error::Device`] if there is no such kernel.
pub fn examine(name: &str) -> Result<Option<String>, Error> {
    if name == NAMES[0] {
        return Ok(a_receive_too_few().err().map(|error| error.to_string()));
    }
    let file = if name == "mailbox" { "long" } else { "broken" };
    let mailboxes = Mailboxes::load(&format!("{file}/{name}.cu"), 2)?;
    // Two passes with the same mailboxes; the waiting rank has the first turn.
    for (pass, input) in [(1, 1.0_f32), (2, 3.0)] {
        let (x, c) = (Array2::from_elem((2, 600), input), Array2::from_elem((2, 600), 0.5_f32));
        let outputs = match mailboxes.outputs(x.view(), c.view(), [1, 0]) {
            Ok((outputs, _)) => outputs,
            Err(error) => return Ok(Some(format!("pass {pass}: {error}"))),
        };
        // All numbers are exact: after many steps each output is twice the input.
        let (is, right) = (outputs[[1, 300]], 2.0 * input);
        if is != right {
            return Ok(Some(format!("pass {pass}: outputs[1, 300] is {is} instead of {right}")));
        }
    }
    Ok(None)
}

/// A pipeline over three groups of rows. The second rank receives only the states of the first two,
/// and computes the third group from old ones.
// ANCHOR: receive
fn a_receive_too_few() -> Result<(), Error> {
    const GROUPS: usize = 3;
    let group = Group::from_devices(&Device::emulated(2))?.with_deadline(Duration::from_secs(20));
    let work = |rank: &Rank| {
        let mut states = rank.device().upload(&[0.0_f32])?;
        for number in 0..GROUPS {
            // MISTAKE: number < GROUPS
            if rank.number() == 1 && number < GROUPS - 1 {
                rank.receive(&mut states, 0)?;
            }
            let after = 2.0 * states.download()?.iter().sum::<f32>() + 1.0;
            states.upload(&[after])?;
            if rank.number() == 0 {
                rank.send(&states, 1)?;
            }
        }
        rank.barrier()
    };
    group.run(work).map(drop)
}
// ANCHOR_END: receive
