//! Other ways to deal out a tile: for the page's exercise.

use linrec::kernels::{ElementType, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::exercises::{filled, requests_and_sectors, spread};
use crate::layout::shares;
use crate::stages::CHOICE;

/// Counts requests and sectors of three ways.
pub fn deals(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("deals", "Other ways to deal out a tile")?;
    lesson.say(
        "Requests and sectors of one array, if the threads with fewer steps are the last ones (the kernel), if they \
         are spread over the block, and if every thread is filled before the next one begins:",
    );
    let header = ["steps", "threads", "last ones", "spread", "filled"];
    let mut table = Table::new(header);
    let mut lost = 0;
    for steps in [77, 200, 260, 1000, 1001, 1024] {
        let threads =
            CHOICE.geometry(ElementType::F32, Pass::Forward, 1, steps as u64).threads as usize;
        let deals = [shares(steps, threads), spread(steps, threads), filled(steps, threads, 4)];
        let costs = deals.map(|deal| {
            lost += steps - deal.iter().map(|share| share.count).sum::<usize>();
            let (requests, sectors) = requests_and_sectors(&deal, 4);
            format!("{requests} / {sectors}")
        });
        table.row([steps.to_string(), threads.to_string()].into_iter().chain(costs));
    }
    lesson.table("deals.csv", Kind::Computed, &table)?;
    lesson.check("steps that nobody got", lost as f64, 0.0);
    Ok(())
}
