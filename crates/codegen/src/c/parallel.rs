//! Parallel loops.
//!
//! The loop becomes a function of its own, which executes one task's share: with `n` iterations and `t` tasks, task `i` has
//! the iterations from `i * n / t` below `(i + 1) * n / t`. What it needs from around the loop travels in a
//! structure on the launching thread's stack. `rx_parallel` hands the tasks to the runtime's threads; in a file that is compiled
//! without the runtime there is one task. A loop inside a parallel loop is executed by the thread that meets it.

use relaxide_ir::{Ref, Var};
use relaxide_tir::For;

use super::{
    body::{Body, Known},
    code::{Code, comment},
    runtime,
    types::{declare, value_type},
};
use crate::{error::CodegenError, uses::Uses};

impl Body<'_, '_> {
    /// The loop on all threads of the pool; by this thread alone where `worth` is given and false.
    pub fn parallel_loop(&mut self, n: &For, worth: Option<&Code>) -> Result<(), CodegenError> {
        runtime::parallel(self.source);
        let worth = worth.map(|worth| self.define("worth", "bool", worth));
        self.begin([&n.min, &n.extent]);
        let min = self.wide_index(&n.min)?;
        let extent = self.wide_index(&n.extent)?;
        let (min, extent) = (self.define("min", "int64_t", &min), self.define("extent", "int64_t", &extent));
        let captured: Vec<(Ref<Var>, Known)> = Uses::of(&n.body)
            .into_iter()
            .filter_map(|var| self.vars.get(&var).cloned().map(|known| (var, known)))
            .collect();
        let function = self.task_function(n, &captured)?;
        let environment = self.fresh("captured");
        let values = captured.iter().map(|(_, known)| known.code.text.as_str()).chain([min.as_str(), extent.as_str()]);
        let values = values.collect::<Vec<_>>().join(", ");
        self.line(format_args!("struct {function}_environment {environment} = {{{values}}};"));
        let worth = worth.as_deref().unwrap_or("true");
        self.leave_if(&format!("rx_parallel({function}, &{environment}, {extent}, {worth}) != 0"))
    }

    /// Writes the function of one task; returns its name.
    fn task_function(&mut self, n: &For, captured: &[(Ref<Var>, Known)]) -> Result<String, CodegenError> {
        let name = self.source.names.fresh(&format!("{}_task", self.kernel.identifier));
        let is_natural = self.is_natural(&n.min);
        let mut task = Body::new(self.kernel, &mut *self.source);
        task.in_parallel = true;
        let mut fields = String::new();
        for (var, known) in captured {
            let field = task.fresh(&var.name);
            let ty = if known.is_vector { format!("const {} *", known.ty) } else { known.ty.clone() };
            fields.push_str(&format!("    {};\n", declare(&ty, &field)));
            let local = match task.kernel.pointers.is_own(var) && task.kernel.distinct {
                true => declare(&format!("{ty}restrict"), &field),
                false if ty.ends_with('*') => declare(&ty, &field),
                false => format!("const {ty} {field}"),
            };
            task.line(format_args!("{local} = shared->{field};"));
            task.vars.insert(var.clone(), Known { code: Code::atom(field), ..known.clone() });
        }
        fields.push_str("    int64_t rx_min;\n    int64_t rx_extent;\n");
        let c_type = value_type(task.kernel.ty(n.var.dtype())?.kind);
        let [first, last, counter] = ["first", "last", &n.var.name].map(|wanted| task.fresh(wanted));
        task.line(format_args!("int64_t {first};"));
        task.line(format_args!("int64_t {last};"));
        task.line(format_args!("rx_share(task, group, shared->rx_extent, &{first}, &{last});"));
        let bound = |at: &String| match c_type {
            "int64_t" => format!("shared->rx_min + {at}"),
            _ => format!("({c_type})(shared->rx_min + {at})"),
        };
        let (from, to) = (bound(&first), bound(&last));
        task.vars.insert(n.var.clone(), Known { is_natural, ..Known::scalar(&counter, c_type) });
        let head = format!("for ({c_type} {counter} = {from}; {counter} < {to}; ++{counter})");
        task.block(head, |this| this.stmt(&n.body))?;
        task.line("return 0;");
        let parameters = "int32_t task, const rx_group *group, void *environment";
        let opening = format!("    const struct {name}_environment *const shared = environment;\n");
        let text = task.finish(&format!("static int {name}({parameters})"), &opening);
        let title = format!("/* The share of one task in the loop over `{}`. */", comment(&n.var.name));
        self.source.function(&format!("struct {name}_environment {{\n{fields}}};\n\n{title}\n{text}"));
        Ok(name)
    }
}
