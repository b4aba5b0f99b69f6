//! Displays reports, tables and the emulator's counters.

use super::content::{Content, Show, escaped, table};
use crate::Table;
use linrec::Error;
use linrec::contract::Report;
use linrec::device::Launched;
use linrec::simt::{Access, Counters, Site};

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
        let mut sites =
            Table::new(["instruction", "line", "requests", "sectors", "per request", "conflicts"]);
        for (opcode, line, site) in by_line(&self.sites) {
            let only_if = |holds: bool, text: String| if holds { text } else { String::new() };
            let shared = matches!(
                site.access,
                Access::SharedLoad | Access::SharedStore | Access::SharedAtomic
            );
            sites.row([
                opcode,
                line,
                site.requests.to_string(),
                only_if(!shared, site.sectors.to_string()),
                only_if(!shared, format!("{:.2}", site.sectors_per_request())),
                only_if(shared, site.conflicts.to_string()),
            ]);
        }
        let (sums, sites) = (sums.content(), sites.content());
        let html = [sums.rich, sites.rich].into_iter().flatten().map(|rich| rich.text);
        Content::html(format!("{}\n{}", sums.plain, sites.plain), html.collect::<String>())
    }
}

/// Returns the counts of each instruction with its source line, in the order of the PTX. A loop
/// that the compiler has unrolled repeats its line; lines that no lane reached are left out.
fn by_line(sites: &[Site]) -> Vec<(String, String, Site)> {
    let mut lines: Vec<(String, String, Site)> = Vec::new();
    for site in sites.iter().filter(|site| site.requests > 0) {
        let opcode = site.opcode.to_string();
        let line = match &site.source {
            Some((file, line)) => format!("{file}:{line}"),
            None => format!("PTX {}", site.line),
        };
        match lines.iter_mut().find(|one| (&one.0, &one.1) == (&opcode, &line)) {
            Some((_, _, sum)) => {
                sum.requests += site.requests;
                sum.sectors += site.sectors;
                sum.conflicts += site.conflicts;
            }
            None => lines.push((opcode, line, site.clone())),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::by_line;
    use linrec::simt::{Access, Site};

    #[test]
    fn an_unrolled_loop_has_one_line() {
        let site = |line, source, requests| Site {
            line,
            source: Some(("k.cu".into(), source)),
            opcode: "ld.global.f32".into(),
            access: Access::GlobalLoad,
            requests,
            sectors: 4 * requests,
            wavefronts: 0,
            conflicts: 0,
            bytes: 128 * requests,
        };
        let lines = by_line(&[site(10, 3, 5), site(11, 4, 1), site(12, 4, 0), site(20, 3, 7)]);
        let seen: Vec<_> =
            lines.iter().map(|(_, line, site)| (&line[..], site.requests, site.sectors)).collect();
        assert_eq!(seen, [("k.cu:3", 12, 48), ("k.cu:4", 1, 4)]);
    }
}
