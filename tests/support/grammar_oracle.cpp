// The recogniser: which ends each part can have from each position, and whether it could go on past the end of the
// text.
#include "tests/support/grammar_oracle.h"

#include <algorithm>

namespace rlx::test {
namespace {

// Positions as bits: the texts are short.
using Ends = std::uint64_t;

}  // namespace

const std::vector<std::string>& OracleGrammar::letters() {
  static const std::vector<std::string> all{"a", "b", "c", "\xC3\xA9", "\xE2\x82\xAC"};
  return all;
}

OracleGrammar::OracleGrammar(unsigned seed) : random_(seed) {
  const int num_rules = 1 + static_cast<int>(random_() % 4);
  rules_.resize(static_cast<std::size_t>(num_rules));
  for (int& r : rules_) r = make(3);
  for (std::size_t r = 0; r < rules_.size(); ++r)
    text_ += (r == 0 ? "root" : "r" + std::to_string(r)) + " ::= " + write(rules_[r], false) + "\n";
  find_ends();
}

int OracleGrammar::make(int depth) {
  Part p;
  const auto pick = [&](int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); };
  const int kind = depth == 0 ? pick(4) : pick(10);
  if (kind < 2) {
    for (int i = pick(3); i >= 0; --i) p.literal += letters()[static_cast<std::size_t>(pick(5))];
    if (pick(8) == 0) p.literal.clear();
  } else if (kind == 2) {
    p.kind = Kind::Class;
    for (int i = pick(3); i >= 0; --i) p.characters.push_back(letters()[static_cast<std::size_t>(pick(5))]);
  } else if (kind == 3) {
    p.kind = Kind::Rule;
    p.rule = pick(static_cast<int>(rules_.size()));
  } else if (kind < 7) {
    p.kind = kind == 4 ? Kind::Choice : Kind::Sequence;
    for (int i = 1 + pick(3); i > 0; --i) p.children.push_back(make(depth - 1));
  } else if (kind == 7) {
    p.kind = Kind::Choice;
    for (int i = 2 + pick(2); i > 0; --i) p.children.push_back(make(depth - 1));
  } else {
    p.kind = Kind::Repeat;
    p.children.push_back(make(depth - 1));
    p.min = pick(3);
    p.max = pick(2) == 0 ? -1 : p.min + pick(3);
  }
  parts_.push_back(p);
  return static_cast<int>(parts_.size()) - 1;
}

std::string OracleGrammar::write(int part, bool inside) const {
  const Part& p = parts_[static_cast<std::size_t>(part)];
  switch (p.kind) {
    case Kind::Literal: return "\"" + p.literal + "\"";
    case Kind::Class: {
      std::string out = "[";
      for (const std::string& c : p.characters) out += c;
      return out + "]";
    }
    case Kind::Rule: return p.rule == 0 ? "root" : "r" + std::to_string(p.rule);
    case Kind::Repeat: {
      const std::string one = "(" + write(p.children[0], false) + ")";
      if (p.max < 0) return one + (p.min == 0 ? "*" : p.min == 1 ? "+" : "{" + std::to_string(p.min) + ",}");
      if (p.min == 0 && p.max == 1) return one + "?";
      if (p.min == p.max) return one + "{" + std::to_string(p.min) + "}";
      return one + "{" + std::to_string(p.min) + "," + std::to_string(p.max) + "}";
    }
    case Kind::Sequence:
    case Kind::Choice: {
      std::string out;
      for (std::size_t i = 0; i < p.children.size(); ++i) {
        if (i > 0) out += p.kind == Kind::Choice ? " | " : " ";
        out += write(p.children[i], true);
      }
      return inside || p.kind == Kind::Choice ? "(" + out + ")" : out;
    }
  }
  return {};
}

void OracleGrammar::find_ends() {
  part_ends_.assign(parts_.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& p = parts_[i];
      const auto ends = [&](int child) { return static_cast<bool>(part_ends_[static_cast<std::size_t>(child)]); };
      bool now = true;
      if (p.kind == Kind::Sequence) now = std::all_of(p.children.begin(), p.children.end(), ends);
      if (p.kind == Kind::Choice) now = std::any_of(p.children.begin(), p.children.end(), ends);
      if (p.kind == Kind::Repeat) now = p.min == 0 || ends(p.children[0]);
      if (p.kind == Kind::Rule) now = ends(rules_[static_cast<std::size_t>(p.rule)]);
      changed = changed || now != part_ends_[i];
      part_ends_[i] = now;
    }
  }
  // Rules that are needed, and that all of them end.
  std::vector<int> work{rules_[0]};
  std::set<int> seen{rules_[0]};
  all_end_ = part_ends_[static_cast<std::size_t>(rules_[0])];
  while (!work.empty()) {
    const Part& p = parts_[static_cast<std::size_t>(work.back())];
    work.pop_back();
    std::vector<int> next = p.children;
    if (p.kind == Kind::Repeat && p.max == 0) next.clear();
    if (p.kind == Kind::Rule) {
      next.push_back(rules_[static_cast<std::size_t>(p.rule)]);
      all_end_ = all_end_ && part_ends_[static_cast<std::size_t>(next.back())];
    }
    for (const int n : next)
      if (seen.insert(n).second) work.push_back(n);
  }
}

OracleGrammar::Answer OracleGrammar::ask(const std::string& text) const {
  const std::size_t size = text.size();
  std::vector<std::vector<Ends>> ends(parts_.size(), std::vector<Ends>(size + 1));
  std::vector<std::vector<bool>> beyond(parts_.size(), std::vector<bool>(size + 1));
  const auto rest_is_in = [&](const std::string& what, std::size_t at) {
    return size - at <= what.size() && what.compare(0, size - at, text, at) == 0;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!part_ends_[i]) continue;
      const Part& p = parts_[i];
      for (std::size_t at = 0; at <= size; ++at) {
        Ends now = ends[i][at];
        bool past = beyond[i][at];
        const auto literal = [&](const std::string& what) {
          if (text.compare(at, what.size(), what) == 0) now |= Ends{1} << (at + what.size());
          past = past || rest_is_in(what, at);
        };
        // From every end of `from`, `part` once more.
        const auto then = [&](Ends from, int part) {
          Ends to = 0;
          const auto c = static_cast<std::size_t>(part);
          for (std::size_t j = at; j <= size; ++j) {
            if ((from >> j & 1) == 0) continue;
            to |= ends[c][j];
            past = past || (part_ends_[c] && beyond[c][j]);
          }
          return to;
        };
        switch (p.kind) {
          case Kind::Literal: literal(p.literal); break;
          case Kind::Class:
            for (const std::string& c : p.characters) literal(c);
            break;
          case Kind::Rule: now |= then(Ends{1} << at, rules_[static_cast<std::size_t>(p.rule)]); break;
          case Kind::Choice:
            for (const int c : p.children) now |= then(Ends{1} << at, c);
            break;
          case Kind::Sequence: {
            Ends from = Ends{1} << at;
            for (const int c : p.children) from = then(from, c);
            now |= from;
            break;
          }
          case Kind::Repeat: {
            Ends from = Ends{1} << at;
            const int most = p.max < 0 ? p.min + static_cast<int>(size) + 1 : p.max;
            for (int k = 0; k <= most; ++k) {
              if (k >= p.min) now |= from;
              if (k < most) from = then(from, p.children[0]);
            }
            break;
          }
        }
        past = past || (now >> size & 1) != 0;
        changed = changed || now != ends[i][at] || past != beyond[i][at];
        ends[i][at] = now;
        beyond[i][at] = past;
      }
    }
  }
  const auto root = static_cast<std::size_t>(rules_[0]);
  if (!part_ends_[root]) return {};
  return {(ends[root][0] >> size & 1) != 0, beyond[root][0]};
}

}  // namespace rlx::test
