//! A workload's results as a picture: for each figure a group of horizontal bars, one for each contestant, as long as the
//! median, with a whisker from the least to the most. Each group has an axis of its own that begins at 0.

use std::fmt::Write;

use crate::metrics::{Better, Metric};
use crate::plot::{COLOURS, escaped, number, round_step, rule, text};
use crate::results::Spread;
use crate::table;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 86.0;
const BAR: f64 = 16.0;
const STEP: f64 = 22.0;
/// Above a group's bars its title, below them its axis.
const TITLE: f64 = 22.0;
const AXIS: f64 = 34.0;

/// One figure; a place for each contestant, in their order.
#[derive(Clone, Debug)]
pub struct Group {
    pub metric: &'static Metric,
    pub spreads: Vec<Option<Spread>>,
}

/// `about` is a sentence, `below` a line of small print: machine and rounds.
pub fn svg(title: &str, about: &str, below: &str, contestants: &[String], groups: &[Group]) -> String {
    let group_height = TITLE + contestants.len() as f64 * STEP + AXIS;
    let height = TOP + groups.len() as f64 * group_height;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    text(&mut out, 16.0, 24.0, "start", "#222222", &format!("<tspan font-size=\"15\">{}</tspan>", escaped(title)));
    text(&mut out, 16.0, 44.0, "start", "#222222", &escaped(about));
    text(&mut out, 16.0, 62.0, "start", "#777777", &escaped(below));
    for (number, group) in groups.iter().enumerate() {
        draw(&mut out, TOP + number as f64 * group_height, contestants, group);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, top: f64, contestants: &[String], group: &Group) {
    let most = group.spreads.iter().flatten().map(|spread| spread.max).fold(0.0, f64::max);
    let step = round_step(most / 4.0);
    let most = (most / step).ceil().max(1.0) * step;
    let x = |value: f64| LEFT + value / most * (WIDTH - LEFT - RIGHT);
    let first = top + TITLE;
    let bottom = first + contestants.len() as f64 * STEP;
    let better = match group.metric.better {
        Better::More => "more is better",
        Better::Less => "less is better",
    };
    let title = format!("{}, {} ({better})", group.metric.title, group.metric.unit);
    text(out, 16.0, top + 12.0, "start", "#222222", &escaped(&title));
    for line in 0..=(most / step).round() as u32 {
        let value = f64::from(line) * step;
        rule(out, (x(value), first - 2.0), (x(value), bottom));
        text(out, x(value), bottom + 13.0, "middle", "#777777", &number(value));
    }
    for (place, (name, spread)) in contestants.iter().zip(&group.spreads).enumerate() {
        let y = first + place as f64 * STEP;
        let colour = COLOURS[place % COLOURS.len()];
        text(out, LEFT - 8.0, y + 12.0, "end", colour, &escaped(name));
        let Some(spread) = spread else {
            text(out, LEFT + 6.0, y + 12.0, "start", "#777777", "not measured");
            continue;
        };
        let (from, to, middle) = (x(spread.min), x(spread.max), y + BAR / 2.0);
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\" fill-opacity=\"0.75\"/>\n\
             <path d=\"M{from:.1} {middle:.1}H{to:.1}M{from:.1} {:.1}v8M{to:.1} {:.1}v8\" stroke=\"#222222\" fill=\"none\"/>",
            x(spread.median) - LEFT,
            middle - 4.0,
            middle - 4.0,
        );
        text(out, to.max(x(spread.median)) + 8.0, y + 12.0, "start", "#222222", &table::cell(*spread));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metrics::find;

    #[test]
    fn bars_are_as_long_as_their_medians_and_whiskers_span_the_range() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        let group = Group {
            metric: find("produce_p99_ms").unwrap(),
            spreads: vec![spread(5.0, 2.5, 10.0), spread(10.0, 10.0, 10.0), None],
        };
        let names = ["A < B", "C", "D"].map(str::to_owned);
        let drawn = svg("t", "a", "b", &names, &[group]);
        assert!(drawn.contains("A &lt; B") && drawn.contains("produce p99, ms (less is better)"));
        assert!(drawn.contains("not measured") && drawn.ends_with("</svg>\n"));
        let widths: Vec<f64> =
            drawn.split("width=\"").skip(3).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[0] * 2.0 - widths[1]).abs() < 0.2, "{widths:?}");
        let whisker = drawn.split("d=\"M").nth(1).and_then(|rest| rest.split('H').next()).unwrap().to_owned();
        let from: f64 = whisker.split(' ').next().unwrap().parse().unwrap();
        assert!((from - LEFT - widths[0] / 2.0).abs() < 0.2, "{from}");
    }

    #[test]
    fn a_figure_of_nothing_but_zeros_is_drawn() {
        let zero = Some(Spread { median: 0.0, min: 0.0, max: 0.0 });
        let group = Group { metric: find("cpu_percent").unwrap(), spreads: vec![zero] };
        assert!(!svg("t", "a", "b", &["A".to_owned()], &[group]).contains("NaN"));
    }
}
