//! RMSNorm on the host: plain loops with sums in f64.

use crate::error::Result;
use crate::op::try_vec;

fn scale(row: &[f32], eps: f32) -> f64 {
    let squares: f64 = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    1.0 / (squares / row.len() as f64 + f64::from(eps)).sqrt()
}

pub(super) fn forward(x: &[f32], gamma: &[f32], beta: Option<&[f32]>, eps: f32, y: &mut [f32]) {
    let h = gamma.len();
    for (row, out) in x.chunks_exact(h).zip(y.chunks_exact_mut(h)) {
        let r = scale(row, eps);
        for j in 0..h {
            let shift = beta.map_or(0.0, |beta| f64::from(beta[j]));
            out[j] = (f64::from(row[j]) * r * f64::from(gamma[j]) + shift) as f32;
        }
    }
}

pub(super) fn backward(
    x: &[f32],
    gamma: &[f32],
    dy: &[f32],
    eps: f32,
    mut dx: Option<&mut [f32]>,
    dgamma: Option<&mut [f32]>,
    dbeta: Option<&mut [f32]>,
) -> Result<()> {
    let h = gamma.len();
    let mut columns = try_vec((0.0f64, 0.0f64), h)?;
    for (i, (row, grad)) in x.chunks_exact(h).zip(dy.chunks_exact(h)).enumerate() {
        let r = scale(row, eps);
        let dot: f64 = (0..h).map(|j| f64::from(gamma[j]) * f64::from(grad[j]) * f64::from(row[j])).sum();
        let slope = r * r * dot / h as f64;
        for j in 0..h {
            let (value, g) = (f64::from(row[j]), f64::from(grad[j]));
            if let Some(dx) = &mut dx {
                dx[i * h + j] = (r * (f64::from(gamma[j]) * g - value * slope)) as f32;
            }
            columns[j].0 += g * value * r;
            columns[j].1 += g;
        }
    }
    if let Some(dgamma) = dgamma {
        dgamma.iter_mut().zip(&columns).for_each(|(out, sums)| *out = sums.0 as f32);
    }
    if let Some(dbeta) = dbeta {
        dbeta.iter_mut().zip(&columns).for_each(|(out, sums)| *out = sums.1 as f32);
    }
    Ok(())
}
