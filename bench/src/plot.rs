//! Line charts as SVG text: panels below one another over a common time axis. Enough for results in the repository.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const PANEL: f64 = 190.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 46.0;
const BETWEEN: f64 = 62.0;
pub(crate) const COLOURS: [&str; 4] = ["#1b6ca8", "#d1495b", "#3b8132", "#8d5a97"];

/// One line; a value for each place of the axis.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: &'static str,
    pub values: Vec<f64>,
}

/// One chart. Its vertical axis begins at 0.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
}

/// `times` is the horizontal axis, rising; `unit` names it.
pub fn svg(title: &str, unit: &str, times: &[f64], panels: &[Panel]) -> String {
    let height = TOP + panels.len() as f64 * (PANEL + BETWEEN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    text(&mut out, LEFT, 22.0, "start", "#222222", &format!("<tspan font-size=\"15\">{}</tspan>", escaped(title)));
    for (number, panel) in panels.iter().enumerate() {
        draw(&mut out, TOP + number as f64 * (PANEL + BETWEEN) + 14.0, unit, times, panel);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, top: f64, unit: &str, times: &[f64], panel: &Panel) {
    let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
    let most = panel.series.iter().flat_map(|s| &s.values).copied().fold(0.0, f64::max);
    let step = round_step(most / 4.0);
    let most = (most / step).ceil().max(1.0) * step;
    let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(1.0));
    let x = |time: f64| LEFT + (time - first) / (last - first).max(f64::MIN_POSITIVE) * (right - LEFT);
    let y = |value: f64| bottom - value / most * PANEL;
    text(out, LEFT, top - 8.0, "start", "#222222", &escaped(&panel.title));
    for line in 0..=(most / step).round() as u32 {
        let value = f64::from(line) * step;
        rule(out, (LEFT, y(value)), (right, y(value)));
        text(out, LEFT - 8.0, y(value) + 4.0, "end", "#555555", &number(value));
    }
    let time_step = round_step((last - first) / 6.0);
    let mut time = (first / time_step).ceil() * time_step;
    while time <= last + time_step * 1e-9 {
        rule(out, (x(time), bottom), (x(time), bottom + 4.0));
        text(out, x(time), bottom + 17.0, "middle", "#555555", &number(time));
        time += time_step;
    }
    text(out, right, bottom + 32.0, "end", "#555555", &escaped(unit));
    for (place, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let mut points = String::new();
        for (&time, &value) in times.iter().zip(&series.values) {
            let _ = write!(points, "{:.1},{:.1} ", x(time), y(value));
        }
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" points=\"{}\"/>",
            points.trim_end()
        );
        text(out, right + 10.0, top + 12.0 + place as f64 * 17.0, "start", colour, &escaped(series.name));
    }
}

pub(crate) fn rule(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// `inner` is markup.
pub(crate) fn text(out: &mut String, x: f64, y: f64, anchor: &str, colour: &str, inner: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{inner}</text>");
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// 1, 2 or 5 times a power of ten, at least `least`.
pub(crate) fn round_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= least * 0.999).unwrap_or(power)
}

pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.0, 1.0), (0.7, 1.0), (1.1, 2.0), (3.0, 5.0), (6.0, 10.0), (240.0, 500.0), (0.02, 0.02)]
        {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}: {}", round_step(least));
        }
    }

    #[test]
    fn every_value_has_its_point_within_the_panel() {
        let series =
            vec![Series { name: "a", values: vec![0.0, 5.0, 10.0] }, Series { name: "b", values: vec![1.0; 3] }];
        let panel = Panel { title: "x < y".to_owned(), series };
        let drawn = svg("t", "min", &[1.0, 2.0, 3.0], &[panel]);
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(drawn.contains("x &lt; y") && drawn.ends_with("</svg>\n"));
        let points = drawn.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let heights: Vec<f64> =
            points.split(' ').filter_map(|p| p.split(',').nth(1)).filter_map(|y| y.parse().ok()).collect();
        assert_eq!(heights.len(), 3);
        assert!((heights[0] - (heights[2] + PANEL)).abs() < 0.2, "{heights:?}");
    }
}
