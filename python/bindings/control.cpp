// Branches, loops, checkpoints and functions with custom derivatives. Python functions build their bodies.
#include "python/bindings/tracing.h"
#include "rlx/ir/builder.h"

namespace rlx::python {
namespace {

Graph& current() {
  Graph* g = traced_graph();
  if (!g) raise(ErrorCode::InvalidArgument, "control flow needs a function under trace", "call it inside rlx.jit");
  return *g;
}

ExprList values_in(Graph& g, nb::handle list, SourceLoc loc) {
  ExprList out;
  for (nb::handle h : list) out.push_back(operand_from(g, h, loc));
  return out;
}

// Calls a Python function on values, while the graph of its body is the current one.
template <class F>
auto drawn(Graph& body, F&& f, bool closed = false) {
  const Frame frame(body, closed);
  return f();
}

BodyFn body_of(nb::handle fn, SourceLoc loc, bool closed = false) {
  return [fn, loc, closed](Graph& body, const ExprList& operands) {
    return drawn(
        body, [&] { return values_in(body, fn(value_list(operands, loc)), loc); }, closed);
  };
}

nb::tuple results(const ExprList& values, SourceLoc loc) { return nb::tuple(value_list(values, loc)); }

}  // namespace

void bind_control(nb::module_& m) {
  m.def("cond", [](nb::handle pred, nb::handle operands, nb::handle then, nb::handle otherwise) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    const ExprList own = values_in(g, operands, loc);
    return results(
        g.cond(Operand(operand_from(g, pred, loc), loc), own, body_of(then, loc), body_of(otherwise, loc), loc), loc);
  });
  m.def(
      "scan",
      [](nb::handle init, nb::handle xs, nb::handle fn, nb::handle length, bool reverse, bool checkpoint,
         const std::string& name) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        ScanOptions options;
        if (!length.is_none()) options.length = dim_from(length, "length");
        options.reverse = reverse;
        options.checkpoint = checkpoint;
        options.name = name;
        const LoopResult r = g.scan(
            values_in(g, init, loc), values_in(g, xs, loc),
            [&](Graph& body, const ExprList& carries, const ExprList& rows) {
              return drawn(body, [&] {
                const nb::object step = fn(value_list(carries, loc), value_list(rows, loc));
                return LoopStep(values_in(body, step[nb::int_(0)], loc), values_in(body, step[nb::int_(1)], loc));
              });
            },
            options, loc);
        return nb::make_tuple(results(r.carries, loc), results(r.ys, loc));
      },
      nb::arg("init"), nb::arg("xs"), nb::arg("fn"), nb::arg("length").none(), nb::arg("reverse"),
      nb::arg("checkpoint"), nb::arg("name"));
  m.def(
      "while_loop",
      [](nb::handle init, nb::handle condition, nb::handle fn, std::optional<std::int64_t> max_iterations) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        WhileOptions options;
        options.max_iterations = max_iterations;
        const LoopResult r = g.while_loop(
            values_in(g, init, loc),
            [&](Graph& body, const ExprList& carries) {
              return drawn(body, [&] { return operand_from(body, condition(value_list(carries, loc)), loc); });
            },
            [&](Graph& body, const ExprList& carries) {
              return drawn(body, [&] { return LoopStep(values_in(body, fn(value_list(carries, loc)), loc)); });
            },
            options, loc);
        return results(r.carries, loc);
      },
      nb::arg("init"), nb::arg("condition"), nb::arg("fn"), nb::arg("max_iterations").none() = nb::none());
  m.def("call", [](nb::handle operands, nb::handle fn, const std::string& name) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    return results(g.call(name, values_in(g, operands, loc), body_of(fn, loc), loc), loc);
  });
  m.def("checkpoint", [](nb::handle operands, nb::handle fn, bool keep_dots) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    return results(g.checkpoint(values_in(g, operands, loc), body_of(fn, loc),
                                keep_dots ? CallSave::Dots : CallSave::Nothing, loc),
                   loc);
  });
  m.def(
      "custom_fn",
      [](nb::handle operands, nb::handle body, nb::handle forward, nb::handle backward, nb::handle jvp,
         const std::string& name) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        CustomFn fn;
        // Derivative rules see the operands alone, so each body holds its own constants.
        fn.body = body_of(body, loc, true);
        if (!forward.is_none()) fn.forward = body_of(forward, loc, true);
        if (!backward.is_none()) fn.backward = body_of(backward, loc, true);
        if (!jvp.is_none()) fn.jvp = body_of(jvp, loc, true);
        fn.name = name;
        return results(g.custom_fn(values_in(g, operands, loc), fn, loc), loc);
      },
      nb::arg("operands"), nb::arg("body"), nb::arg("forward").none(), nb::arg("backward").none(),
      nb::arg("jvp").none(), nb::arg("name"));
}

}  // namespace rlx::python
