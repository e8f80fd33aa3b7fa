// Counts words of a text that it makes: maps, sorting, formatting and closures of Rust's standard
// library, whose frames keep no frame pointer. Runs for some hundred milliseconds.
//   rust [ROUNDS]
use std::collections::{BTreeMap, HashMap};

#[inline(never)]
fn text_of(words: usize, seed: &mut u64) -> String {
    let mut text = String::new();
    for _ in 0..words {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        text.push_str(&format!("word{} ", *seed >> 52));
    }
    text
}

#[inline(never)]
fn count<'a>(text: &'a str) -> HashMap<&'a str, usize> {
    text.split(' ').fold(HashMap::new(), |mut counts, word| {
        *counts.entry(word).or_insert(0) += 1;
        counts
    })
}

#[inline(never)]
fn rank(counts: &HashMap<&str, usize>) -> BTreeMap<usize, Vec<String>> {
    let mut pairs: Vec<_> = counts.iter().collect();
    pairs.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let mut ranks: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (word, count) in pairs {
        ranks.entry(*count).or_default().push(word.to_uppercase());
    }
    ranks
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(60, |text| text.parse().unwrap());
    let worker = std::thread::spawn(move || {
        let mut seed = 1;
        (0..rounds).map(|_| rank(&count(&text_of(20_000, &mut seed))).len()).sum::<usize>()
    });
    println!("{}", worker.join().unwrap());
}
