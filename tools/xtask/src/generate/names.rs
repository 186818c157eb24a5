//! Kafka's names in Rust's spelling.

/// Words that cannot be names as they are.
const KEYWORDS: [&str; 4] = ["match", "type", "ref", "use"];

/// `LogAppendTimeMs` as `log_append_time_ms`.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut previous_is_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && previous_is_lower {
            snake.push('_');
        }
        previous_is_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The name of a struct's field.
pub fn field(name: &str) -> String {
    let snake = snake(name);
    if KEYWORDS.contains(&snake.as_str()) { format!("r#{snake}") } else { snake }
}

/// Whether Rust source uses a variable: the word alone, not as a field and not inside another word.
pub fn uses(source: &str, variable: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    source.match_indices(variable).any(|(start, _)| {
        let before = source[..start].chars().next_back();
        let after = source[start + variable.len()..].chars().next();
        !before.is_some_and(|letter| is_word(letter) || letter == '.') && !after.is_some_and(is_word)
    })
}

/// A parameter's name, with an underscore before it where the body does not use it.
pub fn parameter(source: &str, name: &str) -> String {
    if uses(source, name) { name.to_owned() } else { format!("_{name}") }
}

/// Statements, each with the condition under which it runs; neighbours under the same condition
/// share one `if`.
pub fn guarded(statements: Vec<(Option<String>, String)>) -> String {
    let mut source = String::new();
    let mut statements = statements.into_iter().peekable();
    while let Some((condition, mut body)) = statements.next() {
        while let Some((_, next)) = statements.next_if(|(next, _)| *next == condition) {
            body += &next;
        }
        source += &match condition {
            Some(condition) => format!("if {condition} {{\n{body}}}\n"),
            None => body,
        };
    }
    source
}
