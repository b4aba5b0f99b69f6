//! Where the next step depends on what is there: money and rewards.

use linrec::contract::golden::array_distance;
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use ndarray::{Array1, Axis, array, s};

use super::Gallery;
use crate::models::interest::{account, payment, remaining};
use crate::models::returns::{direct, episodes, horizon, returns as returns_of};

/// Three loans, paid back month by month.
pub fn interest(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("interest", "Compound interest")?;
    let (loan, months) = (-200_000.0, 360);
    lesson.say(
        "A loan of 200,000 is an account that begins at −200,000. Every month the debt grows by its \
         interest, and a payment comes in; after 30 years nothing is left.",
    );
    let mut table = Table::new(["rate a year", "payment a month", "paid in all"]);
    let mut chart = Chart::new("What is left of a loan").axes("years", "debt, in thousands");
    let mut worst: f64 = 0.0;
    let mut entered = None;
    for percent in [2.0, 4.0, 8.0] {
        let rate = percent / 1200.0;
        let pay = payment(-loan, rate, months);
        let rates = Array1::from_elem(months, rate);
        let problem = account(loan, rates.view(), Array1::from_elem(months, pay).view());
        let solved = gallery.real(&problem)?;
        let formula = -remaining(-loan, rate, pay, months).insert_axis(Axis(0));
        worst = worst.max(array_distance(&solved.states, &formula));
        let points = solved.states.iter().enumerate();
        let points = points.map(|(l, y)| ((l + 1) as f64 / 12.0, -y / 1000.0));
        chart = chart.line(&format!("{percent} %"), points.step_by(3));
        table.row([
            format!("{percent} %"),
            format!("{pay:.2}"),
            format!("{:.0}", pay * months as f64),
        ]);
        entered = Some(solved);
    }
    lesson.table("loans.csv", Kind::Computed, &table)?;
    lesson.figure("loans.svg", "Three loans", Kind::Computed, &plot::svg(&[&chart])?)?;
    if let Some(solved) = entered {
        gallery.enter(lesson, ("compound interest", "annuity formula"), &solved, worst);
    }
    Ok(())
}

/// Rewards, and what they are worth beforehand.
pub fn returns(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("returns", "Discounted returns")?;
    let (steps, discounts) = (120, [0.8, 0.95]);
    lesson.say(&format!(
        "{steps} steps of an agent that is rewarded now and then; an episode ends after every 50th. The \
         recurrence walks from the last step to the first, and a coefficient of zero keeps an episode \
         from hearing of the next.",
    ));
    let (rewards, ends) = episodes(steps, 20, 50);
    let (rewards, ends) = (rewards.insert_axis(Axis(0)), ends.insert_axis(Axis(0)));
    let beyond = array![0.5];
    let rewarded = rewards.iter().enumerate().filter(|(_, r)| **r > 0.0);
    let mut chart = Chart::new("Rewards, and what they are worth before")
        .axes("step l", "return")
        .dots("reward", rewarded.map(|(l, &r)| (l as f64, r)));
    let mut worst: f64 = 0.0;
    let mut entered = None;
    for discount in discounts {
        let problem = returns_of(rewards.view(), ends.view(), beyond.view(), discount)?;
        let solved = gallery.real(&problem)?;
        let formula = direct(rewards.view(), ends.view(), beyond.view(), discount);
        worst = worst.max(array_distance(&solved.states, &formula));
        let points = solved.states.slice(s![0, ..]).to_vec().into_iter().enumerate();
        chart = chart.line(&format!("γ = {discount}"), points.map(|(l, value)| (l as f64, value)));
        entered = Some(solved);
    }
    lesson.figure("returns.svg", "Discounted returns", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.say(&format!(
        "With γ = {} a reward of 1 in every step would be worth {:.0}, with γ = {} {:.0}: so far ahead the \
         agent looks.",
        discounts[0],
        horizon(discounts[0]),
        discounts[1],
        horizon(discounts[1]),
    ));
    if let Some(solved) = entered {
        gallery.enter(lesson, ("discounted returns", "double sum"), &solved, worst);
    }
    Ok(())
}
