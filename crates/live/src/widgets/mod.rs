//! The chapters' widgets: pictures of what the chapters' own code computes.
//!
//! A widget is a function that reads its controls and draws. Reading a control declares it: the
//! page shows the controls that were read, with the values that were used.

mod drawing;
mod memory;
mod occupancy;
mod requests;
mod scans;
mod solutions;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use drawing::Drawing;

/// A widget, which returns a drawing and a sentence about it.
type Widget = fn(&mut Controls<'_>) -> Result<(Drawing, String), String>;

/// All widgets: their names in pages, and their titles.
const ALL: [(&str, &str, Widget); 11] = [
    ("memory", "What a coefficient remembers", memory::memory),
    ("reset", "A coefficient of 0 in one place", memory::reset),
    ("reach", "The inputs that an output's gradient reaches", memory::reach),
    ("matrix", "The matrix, and one output's row", memory::matrix),
    ("cut", "A sequence in two parts", scans::cut),
    ("tree", "What each transition spans", scans::tree),
    ("requests", "Sectors of a request, for an index of your own", requests::requests),
    ("banks", "Banks of shared memory, for an index of your own", requests::banks),
    ("occupancy", "The blocks of an SM", occupancy::occupancy),
    ("digits", "Digits that are left", solutions::digits),
    ("newton", "The error of each guess", solutions::newton),
];

/// Returns a widget for some values of its controls. Controls without a value have their first one.
pub fn show(name: &str, values: &BTreeMap<String, String>) -> Result<Value, String> {
    let widget = ALL.iter().find(|(known, ..)| *known == name);
    let (_, title, widget) = widget.ok_or_else(|| format!("there is no widget `{name}`"))?;
    let mut controls = Controls { values, all: Vec::new() };
    let shown = widget(&mut controls);
    let controls = controls.all;
    Ok(match shown {
        Ok((drawing, says)) => {
            json!({ "title": title, "controls": controls, "drawing": drawing.svg(&says), "says": says })
        }
        // A reader's text cannot be understood. The controls stay, so that it can be changed.
        Err(what) => json!({ "title": title, "controls": controls, "drawing": "", "says": what }),
    })
}

/// The controls of a widget, with the reader's values.
struct Controls<'v> {
    values: &'v BTreeMap<String, String>,
    all: Vec<Value>,
}

impl Controls<'_> {
    /// Reads a number from a slider.
    fn slider(&mut self, name: &str, first: f64, range: RangeInclusive<f64>, step: f64) -> f64 {
        let given = self.values.get(name).and_then(|value| value.parse().ok());
        let value = given.unwrap_or(first).clamp(*range.start(), *range.end());
        self.all.push(json!({
            "name": name, "kind": "range", "value": value, "step": step, "min": range.start(), "max": range.end(),
        }));
        value
    }

    /// Reads a whole number from a slider.
    fn whole(&mut self, name: &str, first: usize, range: RangeInclusive<usize>) -> usize {
        let (least, most) = (*range.start() as f64, *range.end() as f64);
        self.slider(name, first as f64, least..=most, 1.0) as usize
    }

    /// Reads a text.
    fn text(&mut self, name: &str, first: &str) -> String {
        let value = self.values.get(name).map_or(first, String::as_str).to_owned();
        self.all.push(json!({ "name": name, "kind": "text", "value": value }));
        value
    }

    /// Reads the index of one of several choices.
    fn choice(&mut self, name: &str, choices: &[&str]) -> usize {
        let given = self.values.get(name);
        let chosen = given.and_then(|given| choices.iter().position(|choice| choice == given));
        let chosen = chosen.unwrap_or(0);
        self.all.push(
            json!({ "name": name, "kind": "choice", "value": choices[chosen], "choices": choices }),
        );
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, values: &[(&str, &str)]) -> Value {
        let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        show(name, &values.collect()).unwrap()
    }

    fn says(name: &str, values: &[(&str, &str)]) -> String {
        shown(name, values)["says"].as_str().unwrap().to_owned()
    }

    /// Includes the values at both ends of every slider.
    #[test]
    fn every_widget_draws_something_for_every_value() {
        for (name, ..) in ALL {
            let first = shown(name, &[]);
            for control in first["controls"].as_array().unwrap() {
                let control_name = control["name"].as_str().unwrap();
                let mut values = Vec::new();
                for end in ["min", "max"] {
                    values.extend(control[end].as_f64().map(|value| value.to_string()));
                }
                for choice in control["choices"].as_array().into_iter().flatten() {
                    values.push(choice.as_str().unwrap().to_owned());
                }
                values.push("nonsense".to_owned());
                for value in values {
                    let shown = shown(name, &[(control_name, &value)]);
                    let drawn = shown["drawing"].as_str().unwrap();
                    let text = control["kind"] == "text";
                    assert!(
                        drawn.starts_with("<svg") || text && value == "nonsense",
                        "{name} {control_name} {value}"
                    );
                    assert!(
                        !drawn.contains("NaN") && !drawn.contains("inf"),
                        "{name} {control_name} {value}: {drawn}"
                    );
                    assert!(shown["says"].as_str().unwrap().len() > 10);
                }
            }
        }
        assert!(show("nothing", &BTreeMap::new()).is_err());
    }

    #[test]
    fn widgets_agree_with_the_pages() {
        assert!(
            says("memory", &[("coefficient", "0.5")]).contains("half of it is left after 1 step")
        );
        assert!(says("requests", &[]).contains("4 sectors"));
        assert!(says("requests", &[("index", "8 * threadIdx.x")]).contains("32 sectors"));
        assert!(says("banks", &[("word", "32 * threadIdx.x")]).contains("32 passes"));
        assert!(says("banks", &[("word", "33 * threadIdx.x")]).contains("1 pass"));
        assert!(says("tree", &[("parts", "16"), ("level", "4")]).contains("16 of 16"));
        // As in the chapter's question.
        assert!(says("occupancy", &[("registers", "32")]).contains("64 of its 64 warps, 100 %"));
        let says_of_40 = says("occupancy", &[("registers", "40")]);
        assert!(says_of_40.contains("6 such blocks: 48 of its 64 warps, 75 %"), "{says_of_40}");
        let none = says("occupancy", &[("threads", "1024"), ("registers", "128")]);
        assert!(none.contains("cannot run"), "{none}");
        assert!(says("cut", &[("length", "24"), ("cut", "8")]).contains("8 steps"));
    }
}
