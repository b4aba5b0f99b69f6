//! Today's date and a description of this machine, which every record contains.

use std::time::{SystemTime, UNIX_EPOCH};

/// Describes the machine: processor, number of cores, operating system.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let plural = if cores == 1 { "" } else { "s" };
    format!("{}, {cores} core{plural}, {}", processor(), std::env::consts::OS)
}

/// Returns the processor's name where the system publishes it (Linux), otherwise the architecture.
fn processor() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |name| name.trim().to_owned())
}

/// Returns today's date in UTC, as `2026-11-21`.
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    civil_date(seconds / 86_400)
}

/// Converts a number of days since 1970-01-01 to a date in the Gregorian calendar.
///
/// Years are counted from March so that the leap day is the last day of a year. Whole years, and
/// months of 153 days in five, can then be divided out of the days since 0000-03-01.
fn civil_date(days_since_1970: u64) -> String {
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days_since_1970 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::civil_date;

    #[test]
    fn dates_around_leap_days_and_years() {
        let days = [0, 58, 59, 10_956, 11_016, 11_017, 20_454, 20_778];
        let dates = days.map(civil_date);
        let expected = [
            "1970-01-01",
            "1970-02-28",
            "1970-03-01",
            "1999-12-31",
            "2000-02-29",
            "2000-03-01",
            "2026-01-01",
            "2026-11-21",
        ];
        assert_eq!(dates, expected);
    }
}
