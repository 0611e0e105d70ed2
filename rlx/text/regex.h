// Regular expressions of tokeniser files: Oniguruma syntax, run by PCRE2 with a bound on the work.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rlx {

/// A compiled pattern. One object serves any number of threads, each with its own Matcher.
class Regex {
 public:
  /// Compiles `pattern`. Errors begin with `where` (file and part): Unsupported for a pattern that PCRE2 cannot read or
  /// reads with another meaning.
  Regex(std::string_view pattern, const std::string& where);
  /// A pattern that matches `text` literally.
  static Regex literal(std::string_view text, const std::string& where);

  /// Finds the matches of texts, one after the other.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    ~Matcher();
    Matcher(Matcher&&) noexcept;
    /// Starts on a text of valid UTF-8. The text must outlive the search.
    void start(std::string_view text);
    /// Begin and end of the next match. An empty match directly after another match is skipped. Errors: Unsupported
    /// when the pattern needs far more steps than the texts have bytes: work of one match and of all places where one
    /// was tried counts.
    std::optional<std::pair<std::size_t, std::size_t>> next();

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace rlx
