// The walk from run_into to a kernel, as ARCHITECTURE.md draws it: the functions that are on the stack of the calling
// thread inside a kernel.
#include <doctest/doctest.h>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/ir/custom_op.h"
#include "rlx/runtime/session.h"
#include "tests/support/paths.h"

#if defined(__linux__) && defined(__GLIBC__)
#include <cxxabi.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace rlx;

namespace {

/// The functions of this program by address, also those that the dynamic linker does not know.
class FunctionNames {
 public:
  FunctionNames() {
    std::ifstream in("/proc/self/exe", std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    const auto at = [&](std::uint64_t offset, auto& to) { std::memcpy(&to, file.data() + offset, sizeof to); };
    ElfW(Ehdr) header;
    at(0, header);
    if (header.e_type == ET_DYN)
      dl_iterate_phdr(
          [](dl_phdr_info* info, std::size_t, void* base) {
            *static_cast<std::uintptr_t*>(base) = info->dlpi_addr;
            return 1;  // the program is the first object
          },
          &base_);
    for (int s = 0; s < header.e_shnum; ++s) {
      ElfW(Shdr) section, names;
      at(header.e_shoff + static_cast<std::uint64_t>(s) * sizeof section, section);
      if (section.sh_type != SHT_SYMTAB) continue;
      at(header.e_shoff + section.sh_link * sizeof names, names);
      for (std::uint64_t k = 0; k < section.sh_size / sizeof(ElfW(Sym)); ++k) {
        ElfW(Sym) symbol;
        at(section.sh_offset + k * sizeof symbol, symbol);
        if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_size != 0)
          functions_.push_back({symbol.st_value, symbol.st_size, file.data() + names.sh_offset + symbol.st_name});
      }
    }
  }
  /// The demangled name of the function that holds the address before a return address.
  std::string of(const void* return_address) const {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(return_address) - 1 - base_;
    for (const Function& f : functions_) {
      if (address < f.begin || address >= f.begin + f.bytes) continue;
      int status = 0;
      const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(f.name.c_str(), nullptr, nullptr, &status),
                                                        std::free);
      return status == 0 ? std::string(text.get()) : f.name;
    }
    return "?";
  }
  bool empty() const { return functions_.empty(); }

 private:
  struct Function {
    std::uintptr_t begin, bytes;
    std::string name;
  };
  std::vector<Function> functions_;
  std::uintptr_t base_ = 0;
};

/// The stack of the last kernel call on the thread that asked for it.
struct WalkRecord {
  std::thread::id of;
  std::array<void*, 64> frames{};
  int depth = 0;
};
WalkRecord& walk_record() {
  static WalkRecord record;
  return record;
}

std::optional<Diagnostic> walk_kernel(const KernelCall& call) {
  WalkRecord& record = walk_record();
  if (std::this_thread::get_id() == record.of)
    record.depth = backtrace(record.frames.data(), static_cast<int>(record.frames.size()));
  std::memcpy(call.outputs[0].data(), call.inputs[0].data(), call.inputs[0].as<float>()->size_bytes());
  return std::nullopt;
}

CompiledGraph walk_program(int threads) {
  static const bool once = [] {
    register_op(CustomOpDef("test.walk")
                    .what("x.")
                    .inputs("x")
                    .infer([](const InferContext& c) -> Result<Shapes> { return c.inputs(); })
                    .reference([](const RefArgs& a) { a.out() = a.in(0); })
                    .kernel(walk_kernel));
    return true;
  }();
  (void)once;
  Graph g("walk");
  g.set_outputs({g.add(custom_op("test.walk"), {g.input("x", {{1 << 16}, DType::F32})})});  // worth waking threads for
  return Session().with_threads(threads).compile(std::move(g));
}

/// The functions between run_into and the kernel, outermost first.
std::vector<std::string> walk_of(CompiledGraph& program) {
  const Tensor x = Tensor::zeros({{1 << 16}, DType::F32});
  Tensor y = Tensor::zeros({{1 << 16}, DType::F32});
  MutableTensorView out;
  out.data = y.mutable_data(), out.dtype = DType::F32, out.size_bytes = y.size_bytes();
  const std::array<TensorView, 1> in{x.view()};
  WalkRecord& record = walk_record();
  record = {};
  program.run_into(in, {&out, 1});  // binds
  record.of = std::this_thread::get_id();
  for (int i = 0; i < 10000 && record.depth == 0; ++i) program.run_into(in, {&out, 1});  // a worker may take the kernel
  const FunctionNames names;
  REQUIRE(!names.empty());
  std::vector<std::string> between;
  for (int i = record.depth - 1; i >= 0; --i) {
    const std::string name = names.of(record.frames[static_cast<std::size_t>(i)]);
    if (!between.empty() || name.starts_with("rlx::CompiledGraph::run_into(")) between.push_back(name);
  }
  const auto is_kernel = [](const std::string& name) { return name.find("walk_kernel") != std::string::npos; };
  while (!between.empty() && !is_kernel(between.back())) between.pop_back();  // a sanitizer's own backtrace()
  REQUIRE(between.size() > 2);
  return {between.begin() + 1, between.end() - 1};
}

/// What the figure of ARCHITECTURE.md names: the objects that hold state, and the numbered functions.
struct WalkFigure {
  std::vector<std::string> holders, calls;
};
WalkFigure walk_figure() {
  const std::string page = test::read_file(test::source_path("ARCHITECTURE.md"));
  const std::size_t begin = page.find("\n holds  "), end = page.find("```", begin);
  REQUIRE(end != std::string::npos);
  WalkFigure figure;
  std::istringstream lines(page.substr(begin, end - begin));
  const std::regex holder("^ ([A-Z][A-Za-z]*) .*"), call(".* [1-9] ([A-Za-z:]+(?: of the task)?).*");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, holder)) figure.holders.push_back(match[1]);
    if (std::regex_match(line, match, call)) figure.calls.push_back(match[1]);
  }
  return figure;
}

void check_walk(int threads, const std::vector<std::string>& figure) {
  CompiledGraph program = walk_program(threads);
  const std::vector<std::string> walk = walk_of(program);
  std::string text;
  for (const std::string& name : walk) text += name + "\n";
  std::size_t met = 0;
  for (const std::string& name : walk)
    if (met < figure.size() && name.starts_with(figure[met])) ++met;
  CHECK_MESSAGE(met == figure.size(), "the walk of ARCHITECTURE.md stops at ", met, " of ", figure.size(), ":\n", text);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK_MESSAGE(walk.size() == figure.size(), "a function that ARCHITECTURE.md does not draw:\n", text);
#endif
  CHECK(figure.size() <= 6);
}

}  // namespace

TEST_CASE("walk: the functions between run_into and a kernel are those of the figure") {
  const std::string impl = "rlx::CompiledGraph::Impl::", task = "rlx::cpu::(anonymous namespace)::run_custom(";
  check_walk(1, {impl + "run(", impl + "submit(", "rlx::cpu::CpuInstance::submit(", "rlx::cpu::run_in_order(", task});
  check_walk(2, {impl + "run(", impl + "submit(", "rlx::cpu::CpuInstance::submit(", "rlx::ThreadPool::run(",
                 "rlx::ThreadPool::Impl::work(", task});
}

TEST_CASE("walk: the figure has four holders of state and six functions") {
  const WalkFigure figure = walk_figure();
  CHECK(figure.holders == std::vector<std::string>{"CompiledGraph", "Executable", "Instance", "Task"});
  CHECK(figure.calls == std::vector<std::string>{"Impl::run", "Impl::submit", "CpuInstance::submit", "ThreadPool::run",
                                                 "ThreadPool::Impl::work", "run of the task"});
}
#endif
