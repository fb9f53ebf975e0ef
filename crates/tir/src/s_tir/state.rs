//! The tree of loops and blocks of a function, and the building of a changed one.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;

use super::ScheduleError;
use crate::stmt::*;

/// A node of a [`Tree`]: an index that is valid in its tree only.
pub type NodeId = usize;

/// A loop or a block, with what is around and inside of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// [`Stmt::For`] or [`Stmt::Block`].
    pub stmt: Stmt,
    /// The loop or block around it.
    pub parent: Option<NodeId>,
    /// Loops and blocks directly inside, in order.
    pub children: Vec<NodeId>,
}

/// The loops and blocks of a function, in order of the text.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The tree of a function's body.
    pub fn of(body: &Stmt) -> Tree {
        let mut tree = Tree::default();
        tree.enter(body, None);
        tree
    }

    fn enter(&mut self, stmt: &Stmt, parent: Option<NodeId>) {
        match stmt {
            Stmt::For(n) => {
                let id = self.push(stmt, parent);
                self.enter(&n.body, Some(id));
            }
            Stmt::Block(n) => {
                let id = self.push(stmt, parent);
                if let Some(init) = &n.block.init {
                    self.enter(init, Some(id));
                }
                self.enter(&n.block.body, Some(id));
            }
            _ => parts(stmt).into_iter().for_each(|part| self.enter(part, parent)),
        }
    }

    fn push(&mut self, stmt: &Stmt, parent: Option<NodeId>) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node { stmt: stmt.clone(), parent, children: Vec::new() });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(id);
        }
        id
    }

    /// A node. Ids come from this tree, so it is there.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// All nodes in order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        0..self.nodes.len()
    }

    /// The loop at a node.
    pub fn as_loop(&self, id: NodeId) -> Option<&Ref<For>> {
        match &self.nodes.get(id)?.stmt {
            Stmt::For(n) => Some(n),
            _ => None,
        }
    }

    /// The block at a node.
    pub fn as_block(&self, id: NodeId) -> Option<&Ref<SBlockRealize>> {
        match &self.nodes.get(id)?.stmt {
            Stmt::Block(n) => Some(n),
            _ => None,
        }
    }

    /// The loop with this counter.
    pub fn find_loop(&self, var: &Ref<Var>) -> Option<NodeId> {
        self.ids().find(|id| self.as_loop(*id).is_some_and(|n| n.var == *var))
    }

    /// The node of a block.
    pub fn find_block(&self, block: &Ref<SBlock>) -> Option<NodeId> {
        self.ids().find(|id| self.as_block(*id).is_some_and(|n| n.block == *block))
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (NodeId, &Ref<SBlockRealize>)> {
        self.ids().filter_map(|id| Some((id, self.as_block(id)?)))
    }

    /// The block around a node.
    pub fn scope_of(&self, id: NodeId) -> Option<NodeId> {
        let mut next = self.nodes[id].parent;
        while let Some(at) = next.filter(|at| self.as_block(*at).is_none()) {
            next = self.nodes[at].parent;
        }
        next
    }

    /// The loops around a node up to the block around it, outermost first; the node itself is not among them.
    pub fn loops_above(&self, id: NodeId) -> Vec<NodeId> {
        let mut loops = Vec::new();
        let mut next = self.nodes[id].parent;
        while let Some(at) = next.filter(|at| self.as_loop(*at).is_some()) {
            loops.push(at);
            next = self.nodes[at].parent;
        }
        loops.reverse();
        loops
    }

    /// All loops around a node, through blocks, outermost first.
    pub fn all_loops_above(&self, id: NodeId) -> Vec<NodeId> {
        let mut loops = Vec::new();
        let mut next = self.nodes[id].parent;
        while let Some(at) = next {
            if self.as_loop(at).is_some() {
                loops.push(at);
            }
            next = self.nodes[at].parent;
        }
        loops.reverse();
        loops
    }

    /// The blocks inside of a node that are in no other block inside of it, in order.
    pub fn child_blocks(&self, id: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut open: Vec<NodeId> = self.nodes[id].children.iter().rev().copied().collect();
        while let Some(at) = open.pop() {
            match self.as_block(at) {
                Some(_) => found.push(at),
                None => open.extend(self.nodes[at].children.iter().rev()),
            }
        }
        found
    }

    /// Whether `outer` is `inner` or around it.
    pub fn contains(&self, outer: NodeId, inner: NodeId) -> bool {
        let mut next = Some(inner);
        while let Some(at) = next {
            if at == outer {
                return true;
            }
            next = self.nodes[at].parent;
        }
        false
    }
}

/// A loop or a block of a function of a module.
#[derive(Clone, Debug)]
pub struct StmtRef {
    /// Name of the function.
    pub func: String,
    /// Its loops and blocks.
    pub tree: Tree,
    /// Which of them it is.
    pub node: NodeId,
}

impl StmtRef {
    /// The loop.
    pub fn for_loop(&self) -> Result<Ref<For>, ScheduleError> {
        self.tree.as_loop(self.node).cloned().ok_or(ScheduleError::Expired { what: "loop" })
    }

    /// The block and the values of its axes.
    pub fn realize(&self) -> Result<Ref<SBlockRealize>, ScheduleError> {
        self.tree.as_block(self.node).cloned().ok_or(ScheduleError::Expired { what: "block" })
    }

    /// The statement.
    pub fn stmt(&self) -> &Stmt {
        &self.tree.node(self.node).stmt
    }

    /// The block around it, whose direct children depend on each other.
    pub fn scope(&self) -> Result<NodeId, ScheduleError> {
        self.tree.scope_of(self.node).ok_or_else(|| match self.stmt() {
            Stmt::Block(n) => ScheduleError::at_block(&n.block, "it is the outermost block of its function"),
            Stmt::For(n) => ScheduleError::at_loop(n, "there is no block around it")
                .with_help("functions are scheduled in block form, with a root block around their loops"),
            _ => ScheduleError::Operand("there is no block around it".into()),
        })
    }
}

/// The statements that a statement other than a loop or block holds.
fn parts(stmt: &Stmt) -> Vec<&Stmt> {
    match stmt {
        Stmt::For(n) => vec![&n.body],
        Stmt::Block(n) => n.block.init.iter().chain([&n.block.body]).collect(),
        Stmt::While(n) => vec![&n.body],
        Stmt::Seq(n) => n.seq.iter().collect(),
        Stmt::If(n) => [&n.then_case].into_iter().chain(&n.else_case).collect(),
        Stmt::Attr(n) => vec![&n.body],
        _ => Vec::new(),
    }
}

/// A body with some statements replaced. Statements are told apart by identity; those around a replaced one are built
/// anew, all others are shared. What is replaced by nothing (`Stmt::nop()`) leaves its sequence, and loops and blocks that
/// hold nothing then go with it, but for the outermost.
pub fn replace(body: &Stmt, changes: &[(Stmt, Stmt)]) -> Stmt {
    if let Some((_, new)) = changes.iter().find(|(old, _)| old == body) {
        return new.clone();
    }
    let go = |s: &Stmt| replace(s, changes);
    match body {
        Stmt::For(n) => {
            let inner = go(&n.body);
            if inner == n.body { body.clone() } else { with_loop_body(n, inner).into() }
        }
        Stmt::Block(n) => {
            let (init, inner) = (n.block.init.as_ref().map(go), go(&n.block.body));
            if inner == n.block.body && init == n.block.init {
                return body.clone();
            }
            let block = Ref::new(SBlock { init, body: inner, ..copy_block(&n.block) });
            with_block(n, block).into()
        }
        Stmt::While(n) => {
            let inner = go(&n.body);
            if inner == n.body {
                body.clone()
            } else {
                Ref::new(While { condition: n.condition.clone(), body: inner }).into()
            }
        }
        Stmt::Seq(n) => {
            let seq: Vec<Stmt> = n.seq.iter().map(go).collect();
            if seq == n.seq { body.clone() } else { Stmt::seq(seq) }
        }
        Stmt::If(n) => {
            let (then_case, else_case) = (go(&n.then_case), n.else_case.as_ref().map(go));
            if then_case == n.then_case && else_case == n.else_case {
                return body.clone();
            }
            Ref::new(IfThenElse { condition: n.condition.clone(), then_case, else_case }).into()
        }
        Stmt::Attr(n) => {
            let inner = go(&n.body);
            if inner == n.body {
                return body.clone();
            }
            Ref::new(AttrStmt { node: n.node.clone(), key: n.key.clone(), value: n.value.clone(), body: inner }).into()
        }
        _ => body.clone(),
    }
}

/// The same loop around another body.
pub fn with_loop_body(n: &For, body: Stmt) -> Ref<For> {
    Ref::new(For { body, ..copy_loop(n) })
}

/// The fields of a loop, to change some of them.
pub fn copy_loop(n: &For) -> For {
    For {
        var: n.var.clone(),
        min: n.min.clone(),
        extent: n.extent.clone(),
        kind: n.kind,
        thread_tag: n.thread_tag.clone(),
        annotations: n.annotations.clone(),
        body: n.body.clone(),
        step: n.step.clone(),
    }
}

/// The fields of a block, to change some of them.
pub fn copy_block(n: &SBlock) -> SBlock {
    SBlock {
        iter_vars: n.iter_vars.clone(),
        reads: n.reads.clone(),
        writes: n.writes.clone(),
        name: n.name.clone(),
        alloc_buffers: n.alloc_buffers.clone(),
        match_buffers: n.match_buffers.clone(),
        annotations: n.annotations.clone(),
        init: n.init.clone(),
        body: n.body.clone(),
    }
}

/// Another block at the same values.
pub fn with_block(n: &SBlockRealize, block: Ref<SBlock>) -> Ref<SBlockRealize> {
    let (iter_values, predicate): (Vec<PrimExpr>, PrimExpr) = (n.iter_values.clone(), n.predicate.clone());
    Ref::new(SBlockRealize { iter_values, predicate, block })
}

/// The block of a new tree that took the place of a block of an old one; see [`super::Schedule::commit`].
pub(super) fn successor(
    block: &Ref<SBlock>,
    before: &Tree,
    after: &Tree,
    reuse: &[(Ref<SBlock>, Ref<SBlock>)],
) -> Option<Ref<SBlock>> {
    let mut named = block.clone();
    if let Some((_, new)) = reuse.iter().find(|(old, _)| old == block) {
        named = new.clone();
    }
    if after.find_block(&named).is_some() {
        return Some(named);
    }
    let axes = |b: &SBlock| b.iter_vars.iter().map(|iter| iter.var.clone()).collect::<Vec<_>>();
    let mine = axes(&named);
    let by_axes = after.blocks().find(|(_, n)| axes(&n.block).iter().any(|var| mine.contains(var)));
    if let Some((_, found)) = by_axes {
        return Some(found.block.clone());
    }
    if !mine.is_empty() {
        return None;
    }
    let fresh = |b: &Ref<SBlock>| before.find_block(b).is_none();
    let mut alike = after.blocks().filter(|(_, n)| n.block.name == named.name && n.block.iter_vars.is_empty());
    let first = alike.find(|(_, n)| fresh(&n.block))?;
    match alike.any(|(_, n)| fresh(&n.block)) {
        true => None,
        false => Some(first.1.block.clone()),
    }
}
