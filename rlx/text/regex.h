// Regular expressions of tokeniser files, written for Oniguruma, run by PCRE2 with a bound on the work.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rlx {

/// A compiled pattern; one object serves any number of threads, each with a Matcher of its own.
class Regex {
 public:
  /// Compiles `pattern`. `where` (file and part) opens errors: Unsupported for a pattern that PCRE2 cannot read, or
  /// that means something else there.
  Regex(std::string_view pattern, const std::string& where);
  /// A pattern that finds `text` itself.
  static Regex literal(std::string_view text, const std::string& where);

  /// Finds matches in texts one after the other.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    ~Matcher();
    Matcher(Matcher&&) noexcept;
    /// Starts on a text, valid UTF-8, which must outlive the search.
    void start(std::string_view text);
    /// Begin and end of the next match. An empty match right after another is passed over. Errors: Unsupported when the
    /// pattern needs far more steps than the texts have bytes.
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
