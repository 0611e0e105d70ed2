// Forks while other threads hold locks or run programs: the child gets an answer or an error by name, and never waits
// for a thread that it does not have.
#include "rlx/base/forks.h"

#include <doctest/doctest.h>

#include "tests/support/build_kind.h"

#if defined(__linux__) && !defined(RLX_THREAD_SANITIZER)  // which refuses threads in a child
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/ir/custom_op.h"
#include "rlx/runtime/session.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"

namespace rlx::test {
namespace {

// Runs `child` in a forked process and returns its exit status; 100 if it does not end.
int in_child(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(30);
    int status = 99;
    try {
      status = child();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

std::atomic<bool> is_waiting{false}, may_go{true};
std::optional<Diagnostic> wait_and_double(const KernelCall& call) {
  is_waiting = true;
  while (!may_go) std::this_thread::yield();
  const auto x = *call.inputs[0].as<float>();
  const auto y = *call.outputs[0].as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
  return std::nullopt;
}
void copy_first(const RefArgs& a) { a.out() = a.in(0); }
CompiledGraph waiting_program(bool keeps) {
  static const bool once = [] {
    OpDef def = plain_record("test.waits");
    def.what = "2 x, when the test says so.";
    def.reference = copy_first;
    register_op(def);
    register_cpu_kernel("test.waits", {wait_and_double, nullptr});
    return true;
  }();
  (void)once;
  Graph g("waits");
  const Expr x = g.input("x", {{4}, DType::F32});
  std::vector<Expr> outputs{g.add(custom_op("test.waits"), {g.matmul(x, g.param("w", {{4, 4}, DType::F32}))})};
  if (keeps) {
    const Expr n = g.state("runs", Tensor::scalar(DType::F32, 0));
    g.set_state("runs", g.add(n, 1.0F));
    outputs.push_back(n);
  }
  g.set_outputs(outputs);
  CompiledGraph f = Session().with_threads(2).compile(std::move(g));
  f.set_param("w", std::vector<float>(16, 1.0F));
  return f;
}
const NamedTensors kFour{{"x", Tensor::full({{4}, DType::F32}, 3)}};
bool right(const std::vector<Tensor>& y) { return y[0].at(0) == 24; }

}  // namespace

TEST_CASE("forks: a thread that locks the mutex of an object again throws by name and does not wait for itself") {
  ObjectMutex mutex("the thing");
  const std::string inside = "the thing is called from inside its own call";
  {
    const std::lock_guard lock(mutex);
    CHECK(contains(error_text([&] { mutex.lock(); }), inside));
    CHECK_FALSE(mutex.try_lock());
    std::string of_worker;  // a callback that a worker of the holder calls
    std::thread([&] {
      const ObjectMutex::AsHolder here(mutex);
      of_worker = error_text([&] { mutex.lock(); });
    }).join();
    CHECK(contains(of_worker, inside));
    CHECK(contains(error_text([&] { mutex.lock(); }), inside));
  }
  std::thread([&] { const std::lock_guard free(mutex); }).join();
  const std::lock_guard again(mutex);
}

TEST_CASE("forks: a mutex of an object that another thread held throws by name, a free one works") {
  ObjectMutex held("the thing"), free("another thing");
  std::atomic<bool> holds{false}, end{false};
  std::thread other([&] {
    held.lock();
    holds = true;
    while (!end) std::this_thread::yield();
    held.unlock();
  });
  while (!holds) std::this_thread::yield();
  const int before = fork_count();
  CHECK(in_child([&] {
          if (fork_count() != before + 1) return 1;
          const std::string text = error_text([&] { held.lock(); });
          if (!contains(text, "the thing was in use by another thread when this process was forked")) return 2;
          free.lock();
          free.unlock();
          // Threads of the child wait for each other as ever.
          int count = 0;
          const auto work = [&] {
            for (int i = 0; i < 2000; ++i) {
              const std::lock_guard lock(free);
              ++count;
            }
          };
          std::thread a(work), b(work);
          a.join(), b.join();
          return count == 4000 ? 0 : 3;
        }) == 0);
  end = true;
  other.join();
  held.lock();
  held.unlock();
}

TEST_CASE("forks: mutexes of the process are free in the child, however busy they were") {
  ProcessMutex a, b;
  std::atomic<bool> end{false};
  std::thread one([&] {
    while (!end) {
      const std::scoped_lock lock(a, b);
    }
  });
  std::thread two([&] {
    while (!end) {
      const std::lock_guard first(a);
      const std::lock_guard second(b);
    }
  });
  int bad = 0;
  for (int i = 0; i < 20; ++i) bad += in_child([&] { return a.try_lock() && b.try_lock() ? 0 : 1; }) != 0 ? 1 : 0;
  end = true;
  one.join(), two.join();
  CHECK(bad == 0);
}

TEST_CASE("forks: a program that another thread was running works in the child, or says why not") {
  for (const bool keeps : {false, true}) {
    CAPTURE(keeps);
    CompiledGraph f = waiting_program(keeps);
    CHECK(right(f.run_typed(kFour)));
    is_waiting = false, may_go = false;
    std::thread runs([&] { (void)f.run_typed(kFour); });
    while (!is_waiting) std::this_thread::yield();
    CHECK(in_child([&] {
            may_go = true;
            const std::string used = "graph 'waits' was in use by another thread when this process was forked";
            // Whatever keeps values between runs is lost with the thread.
            if (keeps) {
              if (!contains(error_text([&] { (void)f.run_typed(kFour); }), used)) return 1;
              if (!contains(error_text([&] { (void)f.read_state("runs"); }), used)) return 2;
              if (!contains(error_text([&] { f.reset(); }), used)) return 3;
              if (!contains(error_text([&] { (void)f.clone(); }), used)) return 4;
            } else {
              for (int i = 0; i < 3; ++i)
                if (!right(f.run_typed(kFour))) return 5;
              CompiledGraph copy = f.clone();
              copy.set_param("w", std::vector<float>(16, 1.0F));
              if (!right(copy.run_typed(kFour))) return 6;
              std::thread beside([&] { (void)f.run_typed(kFour); });
              const bool well = right(f.run_typed(kFour));
              beside.join();
              if (!well) return 7;
            }
            if (!contains(error_text([&] { f.set_param("w", std::vector<float>(16, 1.0F)); }), used)) return 8;
            if (!contains(error_text([&] { (void)f.arena_bytes(); }), used)) return 9;
            if (f.inputs().size() != 1 || f.prepared_bytes() == 0 || !f.unset_params().empty()) return 10;
            CompiledGraph fresh = waiting_program(keeps);
            if (!right(fresh.run_typed(kFour))) return 11;
            const CompiledGraph gone = std::move(f);  // its destructor does not wait
            return 0;
          }) == 0);
    may_go = true;
    runs.join();
    CHECK(right(f.run_typed(kFour)));
  }
}

#if !defined(RLX_ADDRESS_SANITIZER)  // whose allocator stays locked in a child that is forked while a thread allocates
TEST_CASE("forks: while threads compile, run, set weights and clone, at any moment") {
  CompiledGraph f = waiting_program(false), g = waiting_program(true);
  std::atomic<bool> end{false};
  std::thread one([&] {
    while (!end) (void)f.run_typed(kFour), (void)g.run_typed(kFour);
  });
  std::thread two([&] {
    for (int i = 0; !end; ++i) {
      if (i % 3 == 0) f.set_param("w", std::vector<float>(16, 1.0F));
      if (i % 3 == 1) (void)f.clone().run_typed(kFour);
      if (i % 3 == 2) (void)waiting_program(false);
    }
  });
  std::string bad;
  for (int i = 0; i < 25; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(137 * (i % 7)));
    const int status = in_child([&] {
      // Each answers or says that it was in use; something new always works.
      const auto answers = [&](const std::function<bool()>& call) {
        bool well = false;
        const std::string text = error_text([&] { well = call(); });
        return well || contains(text, "was in use by another thread when this process was forked");
      };
      if (!answers([&] { return right(f.run_typed(kFour)); })) return 1;
      if (!answers([&] { return right(g.run_typed(kFour)); })) return 2;
      if (!answers([&] { return right(f.clone().run_typed(kFour)); })) return 3;
      if (!answers([&] { return f.set_param("w", std::vector<float>(16, 1.0F)), true; })) return 4;
      if (!answers([&] { return g.read_state("runs").at(0) >= 0; })) return 5;
      CompiledGraph fresh = waiting_program(i % 2 == 0);
      return right(fresh.run_typed(kFour)) ? 0 : 6;
    });
    if (status != 0) bad += " " + std::to_string(status);
  }
  end = true;
  one.join(), two.join();
  CHECK(bad == "");
}
#endif

}  // namespace rlx::test
#endif
