// Error texts, internal checks and the closest-name hint.
#include "rlx/error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace rlx {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return "invalid argument";
    case ErrorCode::ShapeMismatch: return "shape mismatch";
    case ErrorCode::DTypeMismatch: return "dtype mismatch";
    case ErrorCode::NotFound: return "not found";
    case ErrorCode::BadFile: return "bad file";
    case ErrorCode::Unsupported: return "unsupported";
    case ErrorCode::DeviceUnavailable: return "device unavailable";
    case ErrorCode::DeviceLost: return "device lost";
    case ErrorCode::OutOfMemory: return "out of memory";
    case ErrorCode::Interrupted: return "interrupted";
    case ErrorCode::Internal: return "internal error";
  }
  return "error";
}

std::string Diagnostic::text() const {
  std::string out = concat_text(error_code_name(code), ": ", message);
  if (!where.empty()) out += "\n  " + where;
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

void escape_controls(std::string& text);  // in rlx/base/printable.h, which depends on errors

void escape_controls(std::string& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto is_control = [&](std::size_t i) {
    const unsigned char c = byte(i);
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
           (c == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xA0);  // U+0080 to U+009F
  };
  std::size_t first = 0;
  while (first < text.size() && !is_control(first)) ++first;
  if (first == text.size()) return;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = text.substr(0, first);
  for (std::size_t i = first; i < text.size(); ++i) {
    if (!is_control(i)) {
      out += text[i];
      continue;
    }
    for (const std::size_t end = i + (byte(i) == 0xC2 ? 2 : 1);; ++i) {
      out.append({'\\', 'x', digits[byte(i) >> 4], digits[byte(i) & 15]});
      if (i + 1 == end) break;
    }
  }
  text = std::move(out);
}

namespace {

// Names in messages come from files of others: their control characters would act on the terminal that shows them, and
// a zero byte would end the message.
std::string text_without_controls(Diagnostic& d) {
  for (std::string* part : {&d.message, &d.where, &d.hint}) escape_controls(*part);
  return d.text();
}

}  // namespace

// The base is made first, and escapes the parts that the member takes.
Error::Error(Diagnostic d) : std::runtime_error(text_without_controls(d)), diagnostic_(std::move(d)) {}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : Error(Diagnostic{code, std::move(message), {}, std::move(hint)}) {}

namespace detail {
void throw_no_enumerator(std::string_view type, std::int64_t value) {
  throw Error(ErrorCode::InvalidArgument, concat_text(value, " is not a value of ", type),
              "use an enumerator of this type");
}
void throw_no_index(std::string_view what, std::int64_t index, std::size_t count) {
  throw Error(ErrorCode::InvalidArgument, concat_text("there is no ", what, " ", index, "; their number is ", count),
              "indices count from 0");
}

void append_text(std::string& out, double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", v);
  // The shortest form that reads back as the same double.
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, v);
    double back = 0;
    if (std::sscanf(shorter, "%lf", &back) == 1 && back == v) {
      out.append(shorter);
      return;
    }
  }
  out.append(buffer);
}
}  // namespace detail

void check(bool condition, std::string_view what, const char* file, int line) {
  if (condition) return;
  throw Error(Diagnostic{ErrorCode::Internal, std::string(what), concat_text(file, ":", line),
                         "this is a bug in rlx: please report it with the text above"});
}

std::string short_name(std::string_view name) {
  if (name.size() <= detail::kLongName) return std::string(name);
  std::size_t shown = 80;
  for (int i = 0; i < 3 && (static_cast<unsigned char>(name[shown]) & 0xC0) == 0x80; ++i) --shown;
  std::string out(name.substr(0, shown));
  out += "\u2026 (" + std::to_string(name.size()) + " bytes)";
  return out;
}

void detail::QuotedNames::shorten(std::string& text) {
  // text: .. quotation mark | the argument [before_, here_) | the next argument
  if (before_ == 0 || here_ == text.size()) return;
  const char mark = text[here_];
  if ((mark != '\'' && mark != '"') || text[before_ - 1] != mark) return;
  const std::string name = short_name(std::string_view(text).substr(before_, here_ - before_));
  text.replace(before_, here_ - before_, name);
  here_ = before_ + name.size();
}

std::string quoted_names(const std::vector<std::string>& names, std::size_t shown) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < shown; ++i) out += concat_text(i ? ", '" : "'", names[i], "'");
  return names.size() > shown ? out + ", ..." : out;
}

std::string closest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  if (name.size() > detail::kLongName)
    return best;  // too long for a typo, and the time is proportional to the product
                  // of the lengths
  // Up to a third of wrong letters counts as a typo; more is another word. A name without a common letter never counts.
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::vector<std::size_t> row(name.size() + 1);
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  for (const std::string& candidate : names) {
    if (candidate.size() > 2 * detail::kLongName) continue;
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t j = 1; j <= candidate.size(); ++j) {
      std::size_t diagonal = row[0];
      row[0] = j;
      for (std::size_t i = 1; i <= name.size(); ++i) {
        std::size_t substitute = diagonal + (lower(name[i - 1]) == lower(candidate[j - 1]) ? 0 : 1);
        diagonal = row[i];
        row[i] = std::min({row[i] + 1, row[i - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance && row.back() < std::max(name.size(), candidate.size())) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names, std::string_view otherwise) {
  const std::string near = closest_name(name, names);
  return near.empty() ? std::string(otherwise) : concat_text("did you mean '", near, "'?");
}

}  // namespace rlx
