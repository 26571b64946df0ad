//! Properties of fields and shares, for random primes of every size.

use proptest::prelude::*;
use turnout_core::random::{AesStreams, Purpose, Streams};
use turnout_core::sharing::{Element, PrimeField, ShareSum};

/// A field whose modulus has a random number of bits, and up to 200 of its elements.
fn field() -> impl Strategy<Value = PrimeField> {
    (1_u32..=61).prop_flat_map(|bits| {
        // The smallest prime above such a bound has at most 61 bits.
        let bounds = ((1_u64 << bits) / 2)..((1_u64 << bits) - u64::from(bits < 61)).max(2);
        bounds.prop_filter_map("no prime", |bound| {
            PrimeField::larger_than(bound.min((1 << 61) - 2)).ok()
        })
    })
}

/// Calls a generic property with the integer type of the field's elements.
macro_rules! with_element {
    ($field:expr, $property:ident($($argument:expr),*)) => {
        if $field.width() == 32 {
            $property::<u32>($field, $($argument),*)
        } else {
            $property::<u64>($field, $($argument),*)
        }
    };
}

fn sharing<E: Element>(
    field: PrimeField,
    numbers: &[i64],
    parties: usize,
    seed: u64,
) -> Result<(), TestCaseError> {
    let vector = field.reduce::<E>(numbers)?;
    let mut stream = AesStreams::from_seed(seed).stream(Purpose::Share, 0);
    let shares = field.share(&vector, parties, &mut stream)?;
    prop_assert!(shares.iter().all(|share| share.value() < field.modulus()));
    prop_assert_eq!(&field.reconstruct(&shares, vector.len())?, &vector);
    let compressed = field.share_compressed(&vector, parties, &mut stream)?;
    prop_assert_eq!(&field.reconstruct_compressed(&compressed)?, &vector);
    // The same by way of the parties.
    let mut total = ShareSum::<E>::new(field, vector.len())?;
    total.add_packed(&field.pack(&compressed.explicit)?)?;
    for seed in &compressed.seeds {
        let mut party = ShareSum::<E>::new(field, vector.len())?;
        party.add_seed(seed);
        total.merge(&party)?;
    }
    prop_assert_eq!(total.count(), parties as u64);
    prop_assert_eq!(total.finish(), vector);
    Ok(())
}

fn packing<E: Element>(field: PrimeField, numbers: &[i64]) -> Result<(), TestCaseError> {
    let values = field.reduce::<E>(numbers)?;
    let data = field.pack(&values)?;
    prop_assert_eq!(data.len(), (numbers.len() * field.bits() as usize).div_ceil(8));
    prop_assert_eq!(field.unpack::<E>(&data, values.len())?, values);
    Ok(())
}

/// Bytes are refused, or are the packing of what they give.
fn unpacking<E: Element>(
    field: PrimeField,
    data: &[u8],
    length: usize,
) -> Result<(), TestCaseError> {
    if let Ok(values) = field.unpack::<E>(data, length) {
        prop_assert_eq!(field.pack(&values)?, data);
    }
    let exact = &data[..data.len().min(field.packed_bytes(length))];
    if let Ok(values) = field.unpack::<E>(exact, length) {
        prop_assert_eq!(field.pack(&values)?, exact);
    }
    Ok(())
}

fn lifting<E: Element>(field: PrimeField, numbers: &[i64]) -> Result<(), TestCaseError> {
    let values = field.reduce::<E>(numbers)?;
    let lifted = field.lift(&values)?;
    prop_assert_eq!(&field.reduce::<E>(&lifted)?, &values);
    let q = i128::from(field.modulus());
    for ((&number, &value), &lifted) in numbers.iter().zip(&values).zip(&lifted) {
        prop_assert_eq!(i128::from(number).rem_euclid(q), i128::from(value.value()));
        prop_assert!(2 * i128::from(lifted).abs() <= q);
    }
    // Small integers come back.
    let half = (field.modulus().cast_signed() - 1) / 2;
    let small: Vec<i64> = numbers.iter().map(|number| number % (half + 1)).collect();
    prop_assert_eq!(field.lift(&field.reduce::<E>(&small)?)?, small);
    Ok(())
}

proptest! {
    #[test]
    fn shares_reconstruct(
        field in field(),
        numbers in prop::collection::vec(any::<i64>(), 0..200),
        parties in 2_usize..12,
        seed in any::<u64>(),
    ) {
        with_element!(field, sharing(&numbers, parties, seed))?;
    }

    #[test]
    fn packed_elements_unpack(
        field in field(), numbers in prop::collection::vec(any::<i64>(), 0..200),
    ) {
        with_element!(field, packing(&numbers))?;
    }

    #[test]
    fn elements_have_one_packing(
        field in field(), data in prop::collection::vec(any::<u8>(), 0..64), length in 0_usize..40,
    ) {
        with_element!(field, unpacking(&data, length))?;
    }

    #[test]
    fn lifted_elements_reduce(
        field in field(), numbers in prop::collection::vec(any::<i64>(), 0..200),
    ) {
        with_element!(field, lifting(&numbers))?;
    }
}
