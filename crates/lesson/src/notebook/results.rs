//! Displays the recurrence's results.

use super::content::{Content, Show};
use linrec::{Element, Gradients, Outputs};

impl<T: Element> Show for Outputs<T> {
    fn content(&self) -> Content {
        named([("outputs", &self.outputs), ("final_state", &self.final_state)])
    }
}

impl<T: Element> Show for Gradients<T> {
    fn content(&self) -> Content {
        let Gradients { d_inputs, d_coeffs, d_initial } = self;
        named([
            ("d_inputs", d_inputs as &dyn Show),
            ("d_coeffs", d_coeffs),
            ("d_initial", d_initial),
        ])
    }
}

fn named<const N: usize>(parts: [(&str, &dyn Show); N]) -> Content {
    let (mut plain, mut html) = (Vec::new(), String::new());
    for (name, part) in parts {
        let content = part.content();
        plain.push(format!("{name}: {}", content.plain));
        let rich = content.rich.map(|rich| rich.text).unwrap_or_default();
        html += &format!("<div><code>{name}</code>{rich}</div>");
    }
    Content::html(plain.join("\n"), html)
}
