//! Tensors: content, views, ownership, and DLPack in both directions.

use std::ffi::c_void;
use std::sync::Arc;

use proptest::prelude::*;
use relaxide_ffi::abi::{RawAny, type_index};
use relaxide_ffi::{
    ALIGNMENT, AnyView, DLManagedTensor, DLPackVersion, DLTensor, DataType, Device, ErrorKind, FreeVars, Requirements,
    Tensor, structural_equal,
};

#[test]
fn elements_come_back() {
    let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    assert_eq!((tensor.shape(), tensor.strides(), tensor.dtype()), (&[2, 3][..], &[3, 1][..], DataType::float(32)));
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(tensor.as_slice::<i32>().unwrap_err().is(ErrorKind::TypeError));
    assert!((tensor.data_ptr() as usize).is_multiple_of(ALIGNMENT));
    let reshaped = tensor.reshape(&[3, 2]).unwrap();
    assert_eq!(reshaped.data_ptr(), tensor.data_ptr());
    assert!(tensor.reshape(&[4]).is_err());
    drop(tensor);
    assert_eq!(reshaped.to_vec::<f32>().unwrap()[5], 6.0);
}

#[test]
fn impossible_tensors_are_refused() {
    assert!(Tensor::zeros(&[-1], DataType::float(32)).unwrap_err().is(ErrorKind::ValueError));
    assert!(Tensor::zeros(&[i64::MAX, 2], DataType::float(32)).unwrap_err().is(ErrorKind::ValueError));
    assert!(Tensor::zeros(&[i64::MAX, i64::MAX, 0], DataType::float(32)).is_err());
    assert!(Tensor::from_slice(&[1f32], &[2]).is_err());
    let empty = Tensor::from_slice::<f32>(&[], &[0, 3]).unwrap();
    assert_eq!(empty.as_slice::<f32>().unwrap(), [0.0; 0]);
    let scalar = Tensor::from_slice(&[7i64], &[]).unwrap();
    assert_eq!((scalar.ndim(), scalar.numel()), (0, 1));
}

#[test]
fn the_owner_lives_as_long_as_the_tensor() {
    let owner = Arc::new([1f32, 2.0]);
    let data = owner.as_ptr().cast_mut().cast();
    // SAFETY: the array has those elements and lives in the owner.
    let tensor =
        unsafe { Tensor::from_parts(data, &[1], DataType::float(32), Device::cpu(0), 4, owner.clone()).unwrap() };
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [2.0]);
    assert_eq!(Arc::strong_count(&owner), 2);
    let view = tensor.reshape(&[1, 1]).unwrap();
    drop(tensor);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(view);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn equality_is_of_content() {
    let a = Tensor::from_slice(&[1i64, 2], &[2]).unwrap();
    let b = Tensor::from_slice(&[1i64, 2], &[2]).unwrap();
    assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
    assert!(structural_equal(&a, &b.reshape(&[1, 2]).unwrap(), FreeVars::Same).is_err());
    b.copy_from_slice(&[1i64, 3]).unwrap();
    assert!(structural_equal(&a, &b, FreeVars::Same).is_err());
}

/// A tensor as a foreign library would hand it out.
struct Foreign {
    managed: DLManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    data: Arc<Vec<f32>>,
}

fn foreign(data: &Arc<Vec<f32>>, shape: &[i64], strides: &[i64], byte_offset: u64) -> *mut DLManagedTensor {
    unsafe extern "C" fn release(managed: *mut DLManagedTensor) {
        // SAFETY: `foreign` left the box in the context.
        unsafe { drop(Box::from_raw((*managed).manager_ctx.cast::<Foreign>())) };
    }
    let dl_tensor = DLTensor {
        data: data.as_ptr().cast_mut().cast(),
        device: Device::cpu(0),
        ndim: shape.len() as i32,
        dtype: DataType::float(32),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset,
    };
    let managed = DLManagedTensor { dl_tensor, manager_ctx: std::ptr::null_mut(), deleter: Some(release) };
    let mut this = Box::new(Foreign { managed, shape: shape.to_vec(), strides: strides.to_vec(), data: data.clone() });
    this.managed.dl_tensor.shape = this.shape.as_mut_ptr();
    if !this.strides.is_empty() {
        this.managed.dl_tensor.strides = this.strides.as_mut_ptr();
    }
    assert_eq!(this.data.len(), data.len());
    let this = Box::into_raw(this);
    // SAFETY: the box was leaked just now.
    unsafe {
        (*this).managed.manager_ctx = this.cast::<c_void>();
        &raw mut (*this).managed
    }
}

#[test]
fn a_foreign_tensor_is_shared_and_released_once() {
    let data = Arc::new((0..6).map(|i| i as f32).collect::<Vec<_>>());
    let managed = foreign(&data, &[2, 3], &[], 0);
    // SAFETY: `foreign` describes its memory truly.
    let tensor = unsafe { Tensor::from_dlpack(managed, Requirements::default()) }.unwrap();
    assert_eq!(tensor.data_ptr(), data.as_ptr().cast_mut().cast());
    assert_eq!(tensor.strides(), [3, 1]);
    assert_eq!(Arc::strong_count(&data), 2);
    let exported = tensor.to_dlpack();
    drop(tensor);
    assert_eq!(Arc::strong_count(&data), 2);
    // SAFETY: the structure is ours to read and to release.
    unsafe {
        assert_eq!(exported.as_ref().dl_tensor.data, data.as_ptr().cast_mut().cast());
        (exported.as_ref().deleter.unwrap())(exported.as_ptr());
    }
    assert_eq!(Arc::strong_count(&data), 1);
}

#[test]
fn requirements_are_checked_before_a_tensor_is_taken_over() {
    let data = Arc::new(vec![0f32; 6]);
    let transposed = foreign(&data, &[3, 2], &[1, 3], 0);
    let contiguous = Requirements { contiguous: true, ..Requirements::default() };
    let odd = foreign(&data, &[1], &[], 4);
    let aligned = Requirements { alignment: 4096, ..Requirements::default() };
    // SAFETY: `foreign` describes its memory truly; what is refused stays ours to release.
    unsafe {
        assert!(Tensor::from_dlpack(transposed, contiguous).is_err());
        let tensor = Tensor::from_dlpack(transposed, Requirements::default()).unwrap();
        assert!(tensor.as_slice::<f32>().is_err());
        assert!(Tensor::from_dlpack(odd, aligned).is_err());
        ((*odd).deleter.unwrap())(odd);
        assert!(Tensor::from_dlpack(std::ptr::null_mut(), Requirements::default()).is_err());
    }
    assert_eq!(Arc::strong_count(&data), 1);
}

#[test]
fn versioned_tensors_of_another_major_version_are_refused() {
    let tensor = Tensor::from_slice(&[1f32], &[1]).unwrap();
    let mut exported = tensor.to_dlpack_versioned();
    // SAFETY: the structure is ours until it is taken over.
    unsafe {
        assert_eq!(exported.as_ref().version, DLPackVersion::CURRENT);
        exported.as_mut().version.major = 2;
        assert!(Tensor::from_dlpack_versioned(exported.as_ptr(), Requirements::default()).is_err());
        exported.as_mut().version.major = 1;
        let back = Tensor::from_dlpack_versioned(exported.as_ptr(), Requirements::default()).unwrap();
        assert_eq!(back.data_ptr(), tensor.data_ptr());
    }
}

proptest! {
    #[test]
    fn strided_views_read_what_the_index_says(
        dims in proptest::collection::vec(1i64..5, 0..4),
        reverse in any::<bool>(),
    ) {
        // A transposed array: the strides of the reversed shape, reversed.
        let numel: i64 = dims.iter().product();
        let data = Arc::new((0..numel).map(|i| i as f32).collect::<Vec<_>>());
        let mut steps: Vec<i64> = dims.iter().scan(1, |step, dim| { let old = *step; *step *= dim; Some(old) }).collect();
        if !reverse {
            steps = dims.iter().rev().scan(1, |step, dim| { let old = *step; *step *= dim; Some(old) }).collect();
            steps.reverse();
        }
        let managed = foreign(&data, &dims, &steps, 0);
        // SAFETY: `foreign` describes its memory truly.
        let tensor = unsafe { Tensor::from_dlpack(managed, Requirements::default()) }.unwrap();
        let read = tensor.to_vec::<f32>().unwrap();
        for (flat, value) in read.iter().enumerate() {
            let mut rest = flat as i64;
            let index: Vec<i64> = dims.iter().rev().map(|dim| { let i = rest % dim; rest /= dim; i }).collect();
            let offset: i64 = index.iter().rev().zip(&steps).map(|(i, step)| i * step).sum();
            prop_assert_eq!(*value, offset as f32);
        }
    }

    #[test]
    fn elements_of_every_type_round_trip(values in proptest::collection::vec(any::<i64>(), 0..20)) {
        let shape = [values.len() as i64];
        let tensor = Tensor::from_slice(&values, &shape).unwrap();
        prop_assert_eq!(tensor.to_vec::<i64>().unwrap(), values.clone());
        let halves: Vec<u16> = values.iter().map(|v| *v as u16).collect();
        let tensor = Tensor::from_slice(&halves, &shape).unwrap();
        prop_assert_eq!(tensor.as_slice::<u16>().unwrap(), halves.as_slice());
    }
}

#[test]
fn a_view_may_be_smaller_and_not_larger() {
    let tensor = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]).unwrap();
    let float = tensor.dtype();
    assert_eq!(tensor.view(&[2, 2], float, 0).unwrap().to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(tensor.view(&[2], float, 16).unwrap().to_vec::<f32>().unwrap(), [4.0, 5.0]);
    let error = tensor.view(&[3], float, 16).unwrap_err();
    assert!(error.message().contains("only contains 24 bytes"), "{error}");
    assert!(tensor.view(&[1], float, usize::MAX).is_err());
    assert!(tensor.view(&[i64::MAX, 4], float, 0).is_err());
}

#[test]
fn a_bare_tensor_tells_its_dimensions() {
    let tensor = Tensor::from_slice(&[0i32, 1], &[1, 2]).unwrap();
    let header = tensor.dl_tensor();
    let raw = RawAny::from_ptr(type_index::DL_TENSOR_PTR, std::ptr::from_ref(header).cast_mut().cast());
    // SAFETY: the tensor lives as long as the view.
    let view = unsafe { AnyView::from_raw(raw) };
    assert_eq!(view.dims_and_dtype(), Some((&[1, 2][..], DataType::int(32))));
    assert_eq!(AnyView::from(&tensor).dims_and_dtype(), view.dims_and_dtype());
    assert_eq!(AnyView::from(1i64).dims_and_dtype(), None);
}
