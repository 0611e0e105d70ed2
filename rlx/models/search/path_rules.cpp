// Reads patterns of paths and matches them. A match follows all ways through a pattern at once, so its work is the
// product of the two lengths for any pattern.
#include "rlx/models/search/path_rules.h"

#include <algorithm>

namespace rlx {

PathPattern::PathPattern(std::string_view text) {
  if (text.starts_with('!')) negated_ = true, text.remove_prefix(1);
  if (text.ends_with('/') && !text.ends_with("\\/")) folders_only_ = true, text.remove_suffix(1);
  anchored_ = text.find('/') != std::string_view::npos;
  if (text.starts_with('/')) text.remove_prefix(1);
  malformed_ = text.empty();
  parse(text);
  // Most patterns are a name or "*.ending".
  const auto literal = [](const Part& p) { return p.kind == Kind::Literal; };
  const bool star = !anchored_ && !parts_.empty() && parts_[0].kind == Kind::Star;
  if (std::all_of(parts_.begin() + (star ? 1 : 0), parts_.end(), literal)) {
    whole_literal_ = !star, literal_end_ = star;
    for (const Part& p : parts_)
      if (literal(p)) literal_ += p.character;
  }
}

void PathPattern::parse(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts_name = at == 0 || text[at - 1] == '/';
    const std::string_view rest = text.substr(at);
    if (starts_name && rest == "**") {
      parts_.push_back({.kind = Kind::Rest});
      return;
    }
    if (starts_name && rest.starts_with("**/")) {
      if (parts_.empty() || parts_.back().kind != Kind::Folders) parts_.push_back({.kind = Kind::Folders});
      at += 2;
    } else if (text[at] == '*') {
      if (parts_.empty() || parts_.back().kind != Kind::Star) parts_.push_back({.kind = Kind::Star});
    } else if (text[at] == '?') {
      parts_.push_back({.kind = Kind::Any});
    } else if (text[at] == '[') {
      if (!parse_set(text, at)) {
        malformed_ = true;
        return;
      }
    } else {
      if (text[at] == '\\' && ++at == text.size()) {
        malformed_ = true;
        return;
      }
      parts_.push_back({.kind = Kind::Literal, .character = text[at]});
    }
  }
}

// Reads "[a-z]" at `at`, and leaves `at` at the closing bracket. False without one.
bool PathPattern::parse_set(std::string_view text, std::size_t& at) {
  Part part{.kind = Kind::Set};
  std::size_t i = at + 1;
  if (i < text.size() && (text[i] == '!' || text[i] == '^')) part.inverted = true, ++i;
  for (bool first = true; i < text.size() && (first || text[i] != ']'); first = false, ++i) {
    if (text[i] == '\\' && ++i == text.size()) return false;
    const char from = text[i];
    char to = from;
    if (i + 2 < text.size() && text[i + 1] == '-' && text[i + 2] != ']') {
      i += text[i + 2] == '\\' ? 3 : 2;
      if (i == text.size()) return false;
      to = text[i];
    }
    part.set += from, part.set += to;
  }
  if (i >= text.size()) return false;
  parts_.push_back(std::move(part));
  at = i;
  return true;
}

bool PathPattern::accepts(const Part& part, char c) {
  switch (part.kind) {
    case Kind::Literal: return c == part.character;
    case Kind::Any:
    case Kind::Star: return c != '/';
    case Kind::Folders:
    case Kind::Rest: return true;
    case Kind::Set: break;
  }
  if (c == '/') return false;
  const auto code = static_cast<unsigned char>(c);
  for (std::size_t i = 0; i + 1 < part.set.size(); i += 2)
    if (static_cast<unsigned char>(part.set[i]) <= code && code <= static_cast<unsigned char>(part.set[i + 1]))
      return !part.inverted;
  return part.inverted;
}

bool PathPattern::matches(std::string_view path, bool folder, WorkBudget& budget) const {
  if (malformed_ || (folders_only_ && !folder)) return false;
  if (!anchored_) path = path.substr(path.rfind('/') + 1);
  if (!budget.spend(whole_literal_ || literal_end_ ? 1 + path.size() / 16 : (path.size() + 1) * (parts_.size() + 1))) {
    (void)budget.spend(budget.steps());
    return false;
  }
  if (whole_literal_) return path == literal_;
  if (literal_end_) return path.ends_with(literal_);
  const std::size_t end = parts_.size();
  std::vector<char> now(end + 1, 0), next;
  // Parts that may match nothing: a star, and `**/` where a name begins.
  const auto reach = [&](std::vector<char>& states, std::size_t i, bool name_begins) {
    for (;; ++i) {
      states[i] = 1;
      if (i == end) return;
      const Kind kind = parts_[i].kind;
      if (kind != Kind::Star && !(kind == Kind::Folders && name_begins)) return;
    }
  };
  reach(now, 0, true);
  for (const char c : path) {
    next.assign(end + 1, 0);
    const bool name_begins = c == '/';
    for (std::size_t i = 0; i < end; ++i) {
      if (!now[i] || !accepts(parts_[i], c)) continue;
      const Kind kind = parts_[i].kind;
      const bool repeats = kind == Kind::Star || kind == Kind::Folders || kind == Kind::Rest;
      if (repeats) reach(next, i, name_begins);
      if (kind == Kind::Rest) next[end] = 1;
      if (!repeats) reach(next, i + 1, name_begins);
    }
    now.swap(next);
  }
  return now[end] != 0;
}

PathRules PathRules::parse_lines(std::string_view text) {
  PathRules out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
    if (!line.empty() && line[0] != '#') out.add(line);
  }
  return out;
}

PathVerdict PathRules::verdict(std::string_view path, bool folder, WorkBudget& budget) const {
  for (auto p = patterns_.rbegin(); p != patterns_.rend(); ++p)
    if (p->matches(path, folder, budget)) return p->negated() ? PathVerdict::Negated : PathVerdict::Match;
  return PathVerdict::None;
}

}  // namespace rlx
