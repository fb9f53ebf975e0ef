//! `vm.builtin.paged_attention_kv_cache_create`: a cache by what a model says of it.

use std::sync::Mutex;

use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Function, Ref, Shape as Numbers, Tensor};
use relaxide_runtime::device;

use super::Args;
use super::paged::{Kernels, NORMAL, PagedCache, Passes, Rope, Shape};
use super::tokens::Places;

/// The kind of a layer whose keys are compressed.
const MLA: i64 = 1;

/// Where the kernels begin among the arguments, and what they do.
const FIRST_KERNEL: usize = 13;
const KERNELS: [&str; 15] = [
    "append",
    "append_mla",
    "ragged",
    "prefill",
    "decode",
    "prefill_sliding",
    "decode_sliding",
    "tree",
    "tree_ragged",
    "mla",
    "merge",
    "split_rotary",
    "copy_page",
    "debug_get_kv",
    "compact",
];

/// `((most sequences, most tokens, tokens of a pass, tokens of a page, whether windows slide), (first layer, the one behind the last),
/// heads, heads of keys, size of keys, size of values, kinds of layers, whether caches are sent elsewhere, when positions are put in, scale,
/// base of frequencies, factors of frequencies, a tensor of the element type and device, kernels …)`.
pub(super) fn create(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(FIRST_KERNEL + KERNELS.len(), FIRST_KERNEL + KERNELS.len())?;
    let refused = |message: std::fmt::Arguments<'_>| Err(args.error(ErrorKind::ValueError, message));
    let config: Numbers = args.get(0, "cache_config")?;
    let layers: Numbers = args.get(1, "layer_partition")?;
    let ([most, tokens, _, page_size, slides, ..], [first_layer, end]) = (config.as_slice(), layers.as_slice()) else {
        return refused(format_args!("expected five numbers of the cache and the range of its layers"));
    };
    let (heads, kv_heads) = (args.get(2, "num_qo_heads")?, args.get(3, "num_kv_heads")?);
    let (head_size, v_size): (i64, i64) = (args.get(4, "qk_head_dim")?, args.get(5, "v_head_dim")?);
    let kinds = args.get::<Numbers>(6, "attn_kinds")?.as_slice().to_vec();
    if args.get::<i64>(7, "enable_kv_transfer")? != 0 {
        return refused(format_args!("caches are not sent to other machines: give enable_disaggregation=False"));
    }
    if kinds.contains(&MLA) || head_size != v_size {
        return refused(format_args!(
            "caches of compressed keys (MLA), and of values of another size than keys, are not supported"
        ));
    }
    let (mode, slides) = (args.get(8, "rope_mode")?, *slides != 0);
    if mode == NORMAL && slides {
        return refused(format_args!(
            "windows slide over keys without positions: the RoPE mode is NONE or INLINE where sliding windows are supported"
        ));
    }
    let factors = factors(args.view(11, "rope_ext_factors")?)?;
    let rope = Rope { mode, scale: args.get(9, "rotary_scale")?, theta: args.get(10, "rotary_theta")?, factors };
    let like: Tensor = args.get(12, "init")?;
    let shape =
        Shape { first_layer: *first_layer, kinds, heads, kv_heads, head_size, page_size: *page_size, slides, like };
    let most = usize::try_from(*most).ok();
    // A page more for each sequence: windows slide when a pass is over.
    let pages = most.and_then(|most| {
        let pages = tokens.checked_add(page_size - 1)?.checked_div(*page_size)?.checked_add(most as i64)?;
        let places = i32::try_from(pages.checked_mul(*page_size)?).ok()?;
        (*page_size > 0 && *tokens >= 0).then_some((most, pages, places))
    });
    let Some((most, pages, places)) = pages else {
        return refused(format_args!("a cache of {:?} is too large, or none", config.as_slice()));
    };
    let dims = [pages, 2, kv_heads, *page_size, head_size];
    let page = |_| device::empty_tensor(&dims, shape.like.dtype(), shape.like.device());
    let pages = (*first_layer..*end).map(page).collect::<Result<Vec<_>, _>>()?;
    let state = Mutex::new(Passes::new(Places::new(most, places)));
    Ok(Ref::new(PagedCache { shape, rope, kernels: kernels(args)?, pages, state }).into())
}

/// Factors of frequencies. Programs say that there are none by a null value or by the number zero.
fn factors(given: AnyView<'_>) -> Result<Option<Tensor>, Error> {
    if given.is_none() || given.as_int() == Some(0) {
        return Ok(None);
    }
    given.to().map(Some).map_err(|error| error.context("rope_ext_factors is a tensor, or 0 for none"))
}

fn kernels(args: &Args<'_, '_>) -> Result<Kernels, Error> {
    let of = |wanted: &str| {
        let at = KERNELS.iter().position(|name| *name == wanted).unwrap_or(0);
        kernel(args.view(FIRST_KERNEL + at, wanted)?, wanted)
    };
    Ok(Kernels {
        append: of("append")?,
        ragged: of("ragged")?,
        prefill: of("prefill")?,
        prefill_sliding: of("prefill_sliding")?,
        tree: of("tree")?,
        merge: of("merge")?,
        split_rotary: of("split_rotary")?,
        debug_get_kv: of("debug_get_kv")?,
    })
}

/// The function of a kernel that comes with the name of how it was made, or alone; none where there is none.
fn kernel(given: AnyView<'_>, name: &str) -> Result<Option<Function>, Error> {
    if given.is_none() {
        return Ok(None);
    }
    let Ok(list) = given.to::<Array>() else { return given.to().map(Some).map_err(|error| error.context(name)) };
    let made_by = list.as_slice().first().and_then(|first| first.as_str());
    if let Some(made_by) = made_by.filter(|made_by| *made_by != "tirx") {
        let message =
            format!("kernels of {made_by} are not supported: expected ones that are compiled with the model, 'tirx'");
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let last = list.as_slice().last();
    last.map(|last| last.to::<Function>().map_err(|error| error.context(name))).transpose()
}
