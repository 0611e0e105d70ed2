// Translation of constructs that Oniguruma and PCRE2 read differently, compilation, and matching with a step budget.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "rlx/text/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>

#include "rlx/base/utf8.h"
#include "rlx/base/work_budget.h"
#include "rlx/error.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

// Oniguruma's \s and \w: White_Space (PCRE2's \s includes U+180E), and letters, marks, decimal digits, connectors.
constexpr std::string_view kSpace = "\\x{9}-\\x{D}\\x{85}\\p{Z}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

// Translates one pattern to PCRE2 syntax.
class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(' && in_.substr(at_, 2) == "(?" && at_ + 2 < in_.size()) {
        group();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ErrorCode::Unsupported, concat_text(where_, ": the pattern \"", text_start(in_, 200), "\" has ", what,
                                                    ", which is not supported"));
  }

  // Letters of (?imx-imx: have the same meaning, except m, which is s in PCRE2.
  void group() {
    std::size_t end = at_ + 2;
    while (end < in_.size() && ((in_[end] >= 'a' && in_[end] <= 'z') || in_[end] == '-')) ++end;
    if (end < in_.size() && (in_[end] == ':' || in_[end] == ')')) {
      for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
    } else {
      out_ += "(?";
      at_ += 2;
    }
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse("a backslash at its end");
    const char c = in_[at_ + 1];
    const auto replace = [&](std::string_view set, bool negated) {
      if (in_class && negated) refuse("\\S, \\W or \\H inside a class");
      if (!in_class) out_ += negated ? "[^" : "[";
      out_ += set;
      if (!in_class) out_ += ']';
      at_ += 2;
    };
    switch (c) {
      case 's': return replace(kSpace, false);
      case 'S': return replace(kSpace, true);
      case 'w': return replace(kWord, false);
      case 'W': return replace(kWord, true);
      case 'h': return replace("0-9a-fA-F", false);
      case 'H': return replace("0-9a-fA-F", true);
      case 'p':
      case 'P': return property(c);
      case 'Z': out_ += "(?=\\n?\\z)"; break;
      case 'b':
      case 'B':
        if (!in_class) refuse("a word boundary");
        out_ += "\\b";
        break;
      case 'K':
      case 'X':
      case 'R':
      case 'N':
      case 'O':
      case 'g':
      case 'k':
      case 'y':
      case 'Y':
      case 'C':
      case 'M': refuse(concat_text("\\", std::string_view(&in_[at_ + 1], 1)));
      case 'u':
        if (at_ + 6 > in_.size()) refuse("an incomplete \\u");
        out_ += concat_text("\\x{", in_.substr(at_ + 2, 4), "}");
        at_ += 6;
        return;
      default: out_.append(in_.substr(at_, 2));
    }
    at_ += 2;
  }

  // Names of more than two letters are binary properties or scripts. A script excludes its script extensions.
  void property(char letter) {
    const std::size_t close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos) refuse("\\p without {name}");
    std::string name(in_.substr(at_ + 3, close - at_ - 3));
    at_ = close + 1;
    bool negated = letter == 'P';
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.erase(0, 1);
    }
    static constexpr std::pair<std::string_view, std::string_view> kLong[] = {
        {"Letter", "L"},
        {"Mark", "M"},
        {"Number", "N"},
        {"Punctuation", "P"},
        {"Punct", "P"},
        {"Symbol", "S"},
        {"Separator", "Z"},
        {"Other", "C"},
        {"Digit", "Nd"},
        {"Space", "Xsp"},
        {"Alpha", "Alphabetic"},
        {"Alphabetic", "Alphabetic"},
        {"Upper", "Uppercase"},
        {"Uppercase", "Uppercase"},
        {"Lower", "Lowercase"},
        {"Lowercase", "Lowercase"},
        {"Emoji", "Emoji"},
        {"Any", "Any"},
        {"Uppercase_Letter", "Lu"},
        {"Lowercase_Letter", "Ll"},
        {"Extended_Pictographic", "Extended_Pictographic"},
        {"Ideographic", "Ideographic"}};
    if (name.size() > 2) {
      std::string known;
      for (const auto& entry : kLong)
        if (entry.first == name) known = entry.second;
      name = known.empty() ? "sc:" + name : known;
    }
    out_ += negated ? "\\P{" : "\\p{";
    out_ += name + "}";
  }

  void character_class() {
    out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == ']') refuse("a class that begins with ]");
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '\\') {
        escape(true);
      } else if (in_[at_] == '[' || in_.substr(at_, 2) == "&&") {
        refuse("a class inside a class");
      } else {
        out_ += in_[at_++];
      }
    }
    if (at_ == in_.size()) refuse("a class without end");
    out_ += in_[at_++];
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
};

struct ContextFree {
  void operator()(pcre2_match_context* c) const { pcre2_match_context_free(c); }
  void operator()(pcre2_match_data* d) const { pcre2_match_data_free(d); }
  void operator()(pcre2_jit_stack* s) const { pcre2_jit_stack_free(s); }
};

// A search looks at a window of the text first, whose size and match limit bound its work. Where a match may need more,
// its start is tried alone by code that counts its steps.
constexpr std::size_t kWindow = 128;                          // bytes
constexpr std::uint32_t kWindowLimit = 128;                   // PCRE2's match limit, for each start
constexpr std::uint64_t kFreeSteps = std::uint64_t{1} << 22;  // of a Matcher, before any text
constexpr std::uint64_t kStepsPerByte = 64;
constexpr std::size_t kJitStackBytes = 16u << 20;

constexpr std::uint32_t kCompileOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;

pcre2_code* compiled(std::string_view pattern, std::uint32_t options, int& error) {
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error,
                                   &offset, context.get());
  if (code == nullptr && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
  return code;
}

// Compiled code, for the processor if it and the system allow that.
struct Program {
  pcre2_code* code = nullptr;
  bool jit = false;
  void set(pcre2_code* made, std::uint32_t modes) {
    code = made;
    jit = pcre2_jit_compile(code, modes) == 0;
  }
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { pcre2_code_free(code); }
};

}  // namespace

struct Regex::Code {
  Program whole;                                   // searches a text to its end
  mutable Program window;                          // searches a part of a text, and tells where it looked at its end
  mutable Program start;                           // matches at one place alone, and calls back at each item
  mutable std::once_flag window_made, start_made;  // most texts need one of them, or none
  std::string where;
  std::string pattern, translated;

  const Program& for_window() const {
    std::call_once(window_made, [&] {
      pcre2_code* copy = pcre2_code_copy(whole.code);
      if (copy == nullptr) throw std::bad_alloc();
      window.set(copy, PCRE2_JIT_PARTIAL_HARD);
    });
    return window;
  }
  const Program& for_start() const {
    std::call_once(start_made, [&] {
      int error = 0;
      pcre2_code* code = compiled(translated, kCompileOptions | PCRE2_ANCHORED | PCRE2_AUTO_CALLOUT, error);
      if (code == nullptr)
        throw Error(ErrorCode::Unsupported, concat_text(where, ": the pattern \"", pattern, "\" is too large"));
      start.set(code, PCRE2_JIT_COMPLETE);
    });
    return start;
  }
};

Regex::Regex(std::string_view pattern, const std::string& where) {
  if (pattern.size() > 65536) {
    throw Error(ErrorCode::Unsupported,
                concat_text(where, ": the pattern has ", pattern.size(), " bytes; at most 65536 are supported"));
  }
  const std::string translated = Translator(pattern, where).run();
  auto code = std::make_shared<Code>();
  code->where = where;
  code->pattern = std::string(text_start(pattern, 200));
  int error = 0;
  pcre2_code* made = compiled(translated, kCompileOptions, error);
  if (made == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    throw Error(ErrorCode::Unsupported, concat_text(where, ": the pattern \"", code->pattern,
                                                    "\" is not valid: ", reinterpret_cast<const char*>(message)));
  }
  code->whole.set(made, PCRE2_JIT_COMPLETE);
  code->translated = translated;
  code_ = std::move(code);
}

Regex Regex::literal(std::string_view text, const std::string& where) {
  std::string pattern;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) {
      constexpr char kHex[] = "0123456789abcdef";
      pattern += concat_text("\\x{", std::string(1, kHex[c >> 4]), std::string(1, kHex[c & 15]), "}");
    } else {
      pattern += c;
    }
  }
  return Regex(pattern, where);
}

struct Regex::Matcher::Impl {
  std::shared_ptr<const Code> code;
  std::unique_ptr<pcre2_match_data, ContextFree> data;
  std::unique_ptr<pcre2_match_context, ContextFree> context;
  std::unique_ptr<pcre2_jit_stack, ContextFree> stack;
  std::string_view text;
  std::size_t at = 0, last_end = 0;
  bool done = false, any = false;
  WorkBudget budget{kFreeSteps, 0};
  std::size_t position = 0;  // of the last callback

  int run(const Program& program, std::size_t from, std::size_t end, std::uint32_t options) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (program.jit) {
      const int rc = pcre2_jit_match(program.code, subject, end, from, options, data.get(), context.get());
      if (rc != PCRE2_ERROR_JIT_STACKLIMIT || stack) return rc;
      stack.reset(pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr));
      if (!stack) throw std::bad_alloc();
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      return pcre2_jit_match(program.code, subject, end, from, options, data.get(), context.get());
    }
    return pcre2_match(program.code, subject, end, from, options | PCRE2_NO_UTF_CHECK, data.get(), context.get());
  }

  // Spends the bytes that an item has passed, forwards or back.
  static int count_steps(pcre2_callout_block* block, void* matcher) {
    auto& m = *static_cast<Impl*>(matcher);
    const std::size_t now = block->current_position;
    const std::size_t passed = now > m.position ? now - m.position : m.position - now;
    m.position = now;
    return m.budget.spend(1 + passed) ? 0 : PCRE2_ERROR_MATCHLIMIT;
  }

  // A match that begins at `from`. Its steps are counted.
  int match_at(std::size_t from) {
    const Program& program = code->for_start();
    position = from;
    pcre2_set_match_limit(context.get(), std::numeric_limits<std::uint32_t>::max());
    pcre2_set_callout(context.get(), count_steps, this);
    const int rc = budget.spend(1) ? run(program, from, text.size(), 0) : PCRE2_ERROR_MATCHLIMIT;
    pcre2_set_callout(context.get(), nullptr, nullptr);
    pcre2_set_match_limit(context.get(), kWindowLimit);
    return rc;
  }

  // The next match from `at` on.
  int match() {
    for (std::size_t from = at;;) {
      std::size_t end = text.size() - from > kWindow ? from + kWindow : text.size();
      while (end < text.size() && is_utf8_continuation(text[end])) ++end;
      const bool all = end == text.size();
      int rc = all ? run(code->whole, from, end, 0) : run(code->for_window(), from, end, PCRE2_PARTIAL_HARD);
      if (rc == PCRE2_ERROR_PARTIAL)
        from = pcre2_get_ovector_pointer(data.get())[0];
      else if (rc >= 0 && !all && pcre2_get_ovector_pointer(data.get())[0] >= end)
        rc = PCRE2_ERROR_NOMATCH;  // an empty match, which might be longer with the next character
      if (rc == PCRE2_ERROR_PARTIAL || rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = match_at(from);
        if (rc != PCRE2_ERROR_NOMATCH || from >= text.size()) return rc;
        (void)decode_utf8(text, from);
        continue;
      }
      if (rc != PCRE2_ERROR_NOMATCH || all) return rc;
      from = end;
    }
  }
};

Regex::Matcher::Matcher(const Regex& regex) : impl_(std::make_unique<Impl>()) {
  impl_->code = regex.code_;
  impl_->data.reset(pcre2_match_data_create(1, nullptr));
  impl_->context.reset(pcre2_match_context_create(nullptr));
  if (!impl_->data || !impl_->context) throw std::bad_alloc();
  pcre2_set_match_limit(impl_->context.get(), kWindowLimit);
  pcre2_set_heap_limit(impl_->context.get(), 256 * 1024);  // KiB; the interpreter needs one frame a step
}

Regex::Matcher::~Matcher() = default;
Regex::Matcher::Matcher(Matcher&&) noexcept = default;

void Regex::Matcher::start(std::string_view text) {
  Impl& m = *impl_;
  m.text = text.data() == nullptr ? std::string_view("") : text;
  m.at = m.last_end = 0;
  m.done = m.any = false;
  m.budget.allow(kStepsPerByte * text.size(), 0);
}

std::optional<std::pair<std::size_t, std::size_t>> Regex::Matcher::next() {
  Impl& m = *impl_;
  while (!m.done) {
    const int rc = m.match();
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (rc < 0) {
      throw Error(ErrorCode::Unsupported,
                  concat_text(m.code->where, ": the pattern \"", m.code->pattern, "\" needs too many steps at byte ",
                              m.at, " of a text of ", m.text.size()),
                  "split the text into shorter texts there");
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(m.data.get());
    const std::size_t begin = ends[0], end = ends[1];
    if (begin > end) break;
    if (begin == end && m.any && m.last_end == end) {  // an empty match directly after the last match
      if (m.at >= m.text.size()) break;
      std::size_t after = m.at;
      (void)decode_utf8(m.text, after);
      m.at = after;
      continue;
    }
    m.at = m.last_end = end;
    m.any = true;
    if (end > m.text.size()) break;
    return std::pair(begin, end);
  }
  m.done = true;
  return std::nullopt;
}

}  // namespace rlx
