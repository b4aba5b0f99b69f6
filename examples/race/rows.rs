//! The measurements, printed and written.

use std::path::Path;

use linrec::device::Device;
use linrec::lesson::machine;

/// One measurement.
struct Row {
    pass: String,
    engine: String,
    seq_len: usize,
    ms: f64,
}

/// All measurements of a race.
pub struct Rows {
    machine: String,
    num_seqs: usize,
    rows: Vec<Row>,
}

impl Rows {
    pub fn new(device: &Device, num_seqs: usize) -> Rows {
        Rows { machine: device.name().to_owned(), num_seqs, rows: Vec::new() }
    }

    pub fn add(&mut self, pass: &str, engine: &str, seq_len: usize, ms: f64) {
        let (pass, engine) = (pass.to_owned(), engine.to_owned());
        self.rows.push(Row { pass, engine, seq_len, ms });
    }

    /// The medians of the race that was run last, as a line.
    pub fn print_last(&self) {
        let Some(last) = self.rows.last() else { return };
        let roof = self.median(&last.pass, "roof", last.seq_len);
        print!("{:8} {:6}", last.pass, last.seq_len);
        let mut seen = Vec::new();
        for row in
            self.rows.iter().filter(|row| row.pass == last.pass && row.seq_len == last.seq_len)
        {
            if seen.contains(&&row.engine) {
                continue;
            }
            seen.push(&row.engine);
            let ms = self.median(&row.pass, &row.engine, row.seq_len);
            print!("  {} {:.0} ({:.3})", row.engine, self.gb_per_s(row, ms), roof / ms);
        }
        println!();
    }

    fn median(&self, pass: &str, engine: &str, seq_len: usize) -> f64 {
        let mine = |row: &&Row| row.pass == pass && row.engine == engine && row.seq_len == seq_len;
        let mut ms: Vec<f64> = self.rows.iter().filter(mine).map(|row| row.ms).collect();
        ms.sort_by(f64::total_cmp);
        ms.get(ms.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// 12 bytes for each element forward, 20 backward.
    fn gb_per_s(&self, row: &Row, ms: f64) -> f64 {
        let bytes = if row.pass == "forward" { 12 } else { 20 };
        (self.num_seqs * row.seq_len * bytes) as f64 / ms / 1e6
    }

    /// Every measurement as a line of CSV; the ratio is to the roof's median.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut text = String::from(
            "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio\n",
        );
        let date = machine::date();
        for row in &self.rows {
            let ratio = self.median(&row.pass, "roof", row.seq_len) / row.ms;
            text += &format!(
                "{date},{},f32,{},{},{},{},{:.6},{:.1},{ratio:.4}\n",
                self.machine,
                row.pass,
                row.engine,
                self.num_seqs,
                row.seq_len,
                row.ms,
                self.gb_per_s(row, row.ms)
            );
        }
        std::fs::write(file, text)
    }
}
