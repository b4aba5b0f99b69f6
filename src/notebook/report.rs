//! Reports, tables and what the emulator counted.

use super::content::{Content, Show, escaped, table};
use crate::Error;
use crate::contract::Report;
use crate::device::Launched;
use crate::lesson::Table;
use crate::simt::Counters;

impl Show for Table {
    fn content(&self) -> Content {
        let rows = std::iter::once(self.header()).chain(self.rows());
        Content::html(self.to_text(), table(rows.map(<[String]>::to_vec)))
    }
}

impl Show for Counters {
    fn content(&self) -> Content {
        let mut sums = Table::new(["what", "count"]);
        for (what, count) in [
            ("blocks", self.blocks),
            ("instructions of warps", self.instructions),
            ("instructions of lanes", self.thread_instructions),
            ("divergent branches", self.divergent_branches),
            ("barriers", self.barriers),
        ] {
            sums.row([what.to_owned(), count.to_string()]);
        }
        let mut sites = Table::new(["instruction", "line", "requests", "sectors", "per request"]);
        // What no lane reached is left out.
        for site in self.sites.iter().filter(|site| site.requests > 0) {
            let line = match &site.source {
                Some((file, line)) => format!("{file}:{line}"),
                None => format!("PTX {}", site.line),
            };
            let per_request = format!("{:.2}", site.sectors_per_request());
            let numbers = [site.requests.to_string(), site.sectors.to_string(), per_request];
            sites.row([site.opcode.to_string(), line].into_iter().chain(numbers));
        }
        let (sums, sites) = (sums.content(), sites.content());
        let html = [sums.rich, sites.rich].into_iter().flatten().map(|rich| rich.text);
        Content::html(format!("{}\n{}", sums.plain, sites.plain), html.collect::<String>())
    }
}

impl Show for Launched {
    fn content(&self) -> Content {
        match self.counters() {
            Some(counters) => counters.content(),
            None => {
                let plain = "a GPU ran it; the emulator is what counts";
                Content { plain: plain.to_owned(), rich: None }
            }
        }
    }
}

impl Show for Report {
    fn content(&self) -> Content {
        let mark = if self.passed() { "✓" } else { "✗" };
        let plain = format!("{mark} {self}");
        let html = format!("<pre>{}</pre>", escaped(&plain));
        Content::html(plain, html)
    }
}

impl Show for Error {
    fn content(&self) -> Content {
        let plain = self.to_string();
        let html = format!("<pre>{}</pre>", escaped(&plain));
        Content::html(plain, html)
    }
}
