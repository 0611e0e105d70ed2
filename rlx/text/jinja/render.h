// The interpreter of compiled chat templates.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/text/jinja/builtins.h"
#include "rlx/text/jinja/loop.h"
#include "rlx/text/jinja/program.h"

namespace rlx::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

class Renderer {
 public:
  /// `now` is the time that strftime_now formats, in local time.
  Renderer(const Program& program, Heap& heap, std::time_t now);
  ~Renderer();
  /// The rendered text. Errors: Raised with the position in the template.
  std::string run(const Variables& variables);

  // -- for filters, tests and methods --
  Heap& heap() { return heap_; }
  std::time_t now() const { return now_; }
  Value call(const Value& callee, Arguments& args);
  /// One iteration of the filter of a for loop.
  bool loop_filter(const Stmt& loop, Activation& test, Value& item);
  void enter_test(const Stmt& loop, Activation& test) { enter(loop.test_frame, test); }

 private:
  enum class Flow : std::uint8_t { Normal, Break, Continue };

  // Redirects output to a string while it lives. The string is counted in the budget.
  class Capture {
   public:
    explicit Capture(Renderer& r) : r_(r), before_(r.out_) { r.out_ = this; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() {
      end();
      r_.heap_.budget().give(counted_);
    }
    void append(std::string_view text);
    /// Notes that a filter or call block returned a value that is not text. Python detects it when it joins the output.
    void note_foreign(std::string_view type) {
      if (foreign_.empty()) foreign_ = type;
    }
    std::string take();

   private:
    void end() {
      if (r_.out_ == this) r_.out_ = before_;
    }
    Renderer& r_;
    Capture* before_;
    std::string text_;
    std::string_view foreign_;
    std::size_t counted_ = 0;
  };
  // Variables of one call. They are freed at its end unless a macro refers to them.
  class Call {
   public:
    Call(Renderer& r, const Function& function, Activation* parent);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();
    Activation& operator*() { return *activation_; }

   private:
    Renderer& r_;
    std::unique_ptr<Activation> activation_;
  };
  struct Deeper {
    explicit Deeper(Renderer& r) : r_(r) {
      if (++r_.depth_ > kMaxDepth) raise(kLimit, "the template calls itself too deeply");
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { --r_.depth_; }
    Renderer& r_;
  };
  static constexpr int kMaxDepth = 2000, kMaxCalls = 200;

  // -- statements (render.cpp) --
  Flow exec(const Block& block, Activation& a);
  Flow exec(const Stmt& s, Activation& a);
  Flow exec_if(const Stmt& s, Activation& a);
  void exec_for(const Stmt& s, Activation& a, Flow& after);
  Flow run_loop(const Stmt& s, Activation& a, Activation& around, const Value& over, std::int64_t depth0);
  Flow exec_block(const Stmt& s, Activation& a);
  Flow exec_with(const Stmt& s, Activation& a);
  void exec_set(const Stmt& s, Activation& a);
  void exec_call(const Stmt& s, Activation& a);
  void write(std::string_view text);
  void write(const Value& v);
  void write_result(const Value& v);
  void enter(const Frame& frame, Activation& a);
  void leave(const Frame& frame, Activation& a);
  void assign(const Expr& target, Value value, Activation& a);
  void unpack(const Expr& target, const Value& value, Activation& a);
  void require_namespaces(const Expr& target, Activation& a);
  Value macro(const Stmt& s, Activation& a);
  Value call_macro(const MacroObject& macro, Arguments& args);
  Value call_loop(const Value& loop, Arguments& args);
  Value& variable(const Ref& ref, Activation& a);

  // -- expressions (evaluate.cpp) --
  Value eval(const Expr& e, Activation& a);
  Value eval_operator(const Expr& e, Activation& a);
  Value eval_container(const Expr& e, Activation& a);
  Value eval_compare(const Expr& e, Activation& a);
  Value eval_concat(const Expr& e, Activation& a);
  Value eval_item(const Expr& e, Activation& a);
  Value eval_call(const Expr& e, Activation& a, const Value& caller);
  Value eval_filter(const Expr& e, Activation& a);
  Value eval_test(const Expr& e, Activation& a);
  Value eval_conditional(const Expr& e, Activation& a);
  void arguments(const Expr& e, std::size_t first, Activation& a, Arguments& out);
  Value constant(std::size_t index);

  const Program& program_;
  Heap& heap_;
  std::time_t now_;
  std::vector<Value> globals_, constants_;
  std::vector<std::unique_ptr<Activation>> kept_;
  Capture* out_ = nullptr;
  Position at_;
  Value block_text_;  // text of the set or filter block whose filters run next
  int depth_ = 0, calls_ = 0;
};

}  // namespace rlx::jinja
