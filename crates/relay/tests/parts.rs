//! Parts of the crate by themselves: numbers and names in text, well-formedness, tags, the table of operators, unions of dimensions.

use relaxide_relay::op::{Agreed, Mapping, all};
use relaxide_relay::testing::*;
use relaxide_relay::*;

mod numbers {
    use super::*;

    #[test]
    fn numbers_are_printed_as_streams_print_them() {
        let f32_text = |v: f32| float_text(f64::from(v), |t| t as f32 == v);
        assert_eq!(f32_text(2.5), "2.5");
        assert_eq!(f32_text(1.0), "1");
        assert_eq!(f32_text(0.1), "0.1");
        assert_eq!(f32_text(1e-10), "1e-10");
        assert_eq!(f32_text(1e20), "1e+20");
        assert_eq!(f32_text(123_456_790.0), "1.2345679e+08");
        assert_eq!(float_text(2e-5, |t| t == 2e-5), "2e-05");
        assert_eq!(f32_text(f32::INFINITY), "inf");
    }
}

mod names {
    use super::*;

    #[test]
    fn a_name_in_back_quotes_is_read_as_it_was() {
        for text in ["-1", "", "a b", "`", "\\", "\\n", "line\nbreak\r", "ünïcode", "\"", "*/", "Tensor"] {
            let written = quoted(text);
            assert_eq!(read_quoted(&format!("{written} and more")), Some((text.to_string(), written.len())));
            assert_eq!(name(text), written);
        }
        assert_eq!([global("main"), global("0/x"), global("-1")], ["@main", "@0/x", "@`-1`"]);
        assert_eq!([attribute("a.b"), attribute("a..b"), attribute("meta")], ["a.b", "`a..b`", "`meta`"]);
        assert_eq!(read_quoted("`open"), None);
    }
}

mod well_formed {
    use super::*;

    fn messages(module: &Module) -> Vec<String> {
        well_formed(module).into_iter().map(|e| e.message).collect()
    }

    #[test]
    fn programs_of_text_are_well_formed() {
        assert!(messages(prelude::prelude().unwrap()).is_empty());
    }

    #[test]
    fn what_is_bound_twice_or_nowhere_is_named() {
        let (x, y) = (Var::new("x", None), Var::new("y", None));
        let twice = Expr::bind(x.clone(), Expr::tuple([]), Expr::bind(x.clone(), Expr::tuple([]), Expr::from(&x)));
        let module = Module::of_main(Function::new(vec![], twice, None));
        assert_eq!(messages(&module), ["the variable %x is bound twice"]);
        let loose = Module::of_main(Function::new(vec![x], Expr::from(&y), None));
        assert_eq!(messages(&loose), ["the variable %y is used in @main where it is not bound"]);
        // In the body of one branch a variable is not what it is in the other.
        let z = Var::new("z", None);
        let then = Expr::bind(z.clone(), Expr::tuple([]), Expr::from(&z));
        let choice = Expr::choice(Expr::int(1, relaxide_ffi::DataType::bool()).unwrap(), then, Expr::from(&z));
        let module = Module::of_main(Function::new(vec![], choice, None));
        assert_eq!(messages(&module), ["the variable %z is used in @main where it is not bound"]);
    }
}

mod tags {
    use super::*;

    #[test]
    fn tags_are_those_of_the_reference() {
        assert_eq!(constructor_tag("List", 0), -2013265920);
        assert_eq!(constructor_tag("List", 1), -2013265919);
        assert_eq!(constructor_tag("Option", 0) as i32 as u32 >> 24, 0x42);
        assert_eq!(constructor_tag("Tree", 0) as i32 as u32 >> 24, 0x38);
        assert_eq!(constructor_tag("tensor_float32_t", 0) as i32 as u32 >> 24, 0x26);
    }
}

mod operators {
    use super::*;

    #[test]
    fn names_are_unique_and_attribute_nodes_exist() {
        let mut names = std::collections::HashSet::new();
        for def in all() {
            assert!(names.insert(def.name), "{} is there twice", def.name);
            assert!(def.attrs.is_empty() || def.attrs_def().is_some(), "{}: no node {}", def.name, def.attrs);
        }
    }

    #[test]
    fn what_a_row_names_in_relax_exists_there() {
        for def in all() {
            let name = match def.mapping {
                Mapping::Same => def.name,
                Mapping::As(name) | Mapping::Binary(name) => name,
                _ => continue,
            };
            assert!(relaxide_relax::op::lookup(name).is_some(), "{}: Relax has no `{name}`", def.name);
        }
    }
}

mod unions {
    use super::*;
    use relaxide_ir::Var;
    use relaxide_ir::prim::{PrimExpr, int};

    #[test]
    fn a_union_that_is_known_is_found_whatever_it_was_made_of() {
        let [n, m, k, d, e] = ["n", "m", "k", "d", "e"].map(|name| PrimExpr::Var(Var::dim(name)));
        let mut agreed = Agreed::default();
        let both = agreed.parts_of_both(&n, &m);
        assert_eq!(agreed.known(&both), None);
        agreed.add(d.clone(), both);
        let again = |agreed: &Agreed, p: &PrimExpr, q: &PrimExpr| agreed.known(&agreed.parts_of_both(p, q));
        assert_eq!(again(&agreed, &m, &n), Some(d.clone()));
        assert_eq!(again(&agreed, &d, &n), Some(d.clone()));
        assert_eq!(again(&agreed, &m, &d), Some(d.clone()));
        assert_eq!(again(&agreed, &d, &k), None);
        let mark = agreed.mark();
        let more = agreed.parts_of_both(&k, &d);
        agreed.add(e.clone(), more);
        assert_eq!(again(&agreed, &e, &n), Some(e.clone()));
        assert_eq!(again(&agreed, &d, &k), Some(e));
        agreed.forget(mark);
        assert_eq!(again(&agreed, &d, &k), None);
        assert_eq!(again(&agreed, &d, &int(5)), None);
    }
}
