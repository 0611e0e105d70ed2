// Every public function is misused by a test, or a list gives the reason why not. A new function without a line in the
// list fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "rlx/error.h"
#include "tests/support/paths.h"
#include "tests/unit/api/header_scan.h"

using namespace rlx;

namespace {

using Lines = std::map<std::string, std::string>;  // function -> its line in the list

Lines read_list(const std::string& text) {
  Lines out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t gap = line.find("  ");
    if (gap == std::string::npos) throw Error(ErrorCode::BadFile, "a line without two spaces: " + line);
    if (!out.emplace(line.substr(0, gap), line.substr(line.find_first_not_of(' ', gap))).second)
      throw Error(ErrorCode::BadFile, "listed twice: " + line);
  }
  return out;
}

// The name of each test case of tests/unit/api -> its text.
std::map<std::string, std::string> cases_of(const std::string& source) {
  std::map<std::string, std::string> out;
  const std::string mark = "\nTEST_CASE(\"";
  for (std::size_t at = source.find(mark); at != std::string::npos;) {
    const std::size_t name = at + mark.size(), end = source.find('"', name), next = source.find(mark, end);
    out.emplace(source.substr(name, end - name), source.substr(end, next == std::string::npos ? next : next - end));
    at = next;
  }
  return out;
}

bool mentions(const std::string& text, const std::string& word) {
  auto inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !inside(text[at - 1])) && (!inside(word.back()) || end == text.size() || !inside(text[end])))
      return true;
  }
  return false;
}

// The errors of the list, one line each.
std::vector<std::string> problems(const std::set<std::string>& functions, const Lines& list,
                                  const std::map<std::string, std::string>& cases) {
  std::vector<std::string> out;
  for (const std::string& f : functions)
    if (!list.contains(f)) out.push_back(f + " has no line: add a misuse of it to tests/unit/api and name the case");
  for (const auto& [f, says] : list) {
    if (!functions.contains(f)) out.push_back(f + " is listed, but no public header declares it");
    const std::string short_name = f.substr(f.rfind("::") == std::string::npos ? 0 : f.rfind("::") + 2);
    if (says.starts_with("misuse: ")) {
      const auto it = cases.find(says);
      if (it == cases.end())
        out.push_back(f + ": there is no test case '" + says + "'");
      else if (!mentions(it->second, short_name))
        out.push_back(f + ": '" + says + "' does not call it");
    } else if (says != "total" && says != "interface" && !says.starts_with("contract: ")) {
      out.push_back(f + ": '" + says + "' is neither a case nor an exemption");
    }
  }
  return out;
}

}  // namespace

TEST_CASE("every public function is misused by a test case or is listed with the reason why not") {
  std::set<std::string> functions;
  std::istringstream headers(test::read_file(test::build_path("generated/public_headers.txt")));
  for (std::string header; std::getline(headers, header);)
    for (std::string& f : test::public_functions(test::read_file(test::source_path(header))))
      functions.insert(std::move(f));
  std::map<std::string, std::string> cases;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("tests/unit/api")))
    if (entry.path().extension() == ".cpp") cases.merge(cases_of(test::read_file(entry.path().string())));
  CHECK(functions.size() > 800);
  for (const std::string& p :
       problems(functions, read_list(test::read_file(test::source_path("tests/unit/api/public_functions.txt"))), cases))
    FAIL_CHECK(p);
}

TEST_CASE("the list of public functions: each fault is found") {
  const std::map<std::string, std::string> cases{{"misuse: a", "call(f(1), g)"}};
  const std::set<std::string> functions{"A::f", "A::h"};
  CHECK(problems(functions, {{"A::f", "misuse: a"}, {"A::h", "total"}}, cases).empty());
  CHECK(problems(functions, {{"A::f", "misuse: a"}}, cases).size() == 1);                           // no line
  CHECK(problems(functions, {{"A::f", "misuse: a"}, {"A::h", "misuse: a"}}, cases).size() == 1);    // not called
  CHECK(problems(functions, {{"A::f", "misuse: b"}, {"A::h", "interface"}}, cases).size() == 1);    // no such case
  CHECK(problems(functions, {{"A::f", "because"}, {"A::h", "contract: why"}}, cases).size() == 1);  // no reason
  CHECK(problems({}, {{"A::f", "misuse: a"}}, cases).size() == 1);                                  // no function
  CHECK_FALSE(mentions("prefix_f", "f"));
  CHECK_FALSE(mentions("ff(", "f"));
}

TEST_CASE("public functions are found in the text of a header") {
  const std::vector<std::string> found = test::public_functions(R"(
#define RLX_MACRO(x) \
  int hidden(x)
namespace rlx {
/* void comment(); */ // void comment();
enum class E { A, B };
struct Plain { int field = f(3); int brace{4}; void (*pointer)(int) = nullptr; Rule<int(int)> rule; };
int free_function(std::vector<int> v = {}, const char* text = "a;b{");
template <class T> requires(sizeof(T) > 1 && requires { T::x; })
T templated(T v) { return v; }
namespace detail { void internal(); }
class A final : public Base<int> {
 public:
  A() = default;
  A(const A&) = delete;
  explicit A(int x) : field_(x), other_{x} { body(); }
  ~A();
  [[nodiscard]] virtual std::map<int, int> method() const noexcept(true) = 0;
  const int& inline_one() const { if (x) { call(); } return field_; }
  friend bool operator==(const A&, const A&) = default;
  friend A operator+(const A& a, const A& b);
  bool operator()(int) const;
  operator Value() const { return {}; }
  static int of(A a, A b);
  struct Inner { int deep(); };
  using Alias = int;
 protected:
  void kept();
 private:
  void secret();
  struct Hidden { void no(); };
  int field_ = 0;
};
constexpr int kValue = compute(3);
inline A* pointer_result();
}
)");
  CHECK(found == std::vector<std::string>{"free_function", "templated", "A::A", "A::method", "A::inline_one",
                                          "operator+", "A::operator()", "A::operator Value", "A::of", "A::Inner::deep",
                                          "pointer_result"});
}
