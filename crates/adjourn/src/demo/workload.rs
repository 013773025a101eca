//! The jobs of the demo: three tenants, one of them with nearly all the work, mixed by the seed.

use serde_json::json;

use super::{provider::Provider, random::Random};

/// The name that the demo's provider has in the settings.
pub const PROVIDER_NAME: &str = "demo";

/// The tenants with their shares of every 300 jobs.
const SHARES: [(&str, u32); 3] = [("large", 280), ("small", 10), ("tiny", 10)];

/// The jobs of a demo.
#[derive(Clone, Debug)]
pub struct Workload {
    jobs: Vec<(String, &'static str)>,
}

impl Workload {
    /// `jobs` jobs. The large tenant's come first, as in the worst case for the others; `seed` names them.
    #[must_use]
    pub fn new(jobs: u32, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let whole: u32 = SHARES.iter().map(|(_, share)| share).sum();
        let mut left = jobs;
        let mut all = Vec::new();
        // From the smallest share to the largest, each small one at least one job, the largest takes the rest.
        for (index, (tenant, share)) in SHARES.into_iter().enumerate().rev() {
            let fair = u64::from(jobs)
                .saturating_mul(u64::from(share))
                .div_ceil(u64::from(whole));
            let count = if index == 0 {
                left
            } else {
                u32::try_from(fair).unwrap_or(u32::MAX).min(left)
            };
            left = left.saturating_sub(count);
            all.extend((1..=count).map(|number| {
                let salt = random.number() & 0xffff;
                (format!("{tenant}-{number:04}-{salt:04x}"), tenant)
            }));
        }
        all.reverse();
        Self { jobs: all }
    }

    /// The ids of the jobs.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|(id, _)| id.as_str())
    }

    /// How many jobs a tenant has.
    #[must_use]
    pub fn count_of(&self, tenant: &str) -> usize {
        self.jobs.iter().filter(|(_, of)| *of == tenant).count()
    }

    /// The jobs as `adjourn send` takes them: one JSON object a line.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for (id, tenant) in &self.jobs {
            let job = json!({
                "provider": PROVIDER_NAME,
                "method": "POST",
                "path": Provider::path_of(tenant, id),
                "body": { "job": id },
                "id": id,
                "tenant": tenant,
                "run": "demo",
            });
            lines.push_str(&job.to_string());
            lines.push('\n');
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_shares_are_kept_and_every_job_has_its_own_id() {
        let workload = Workload::new(300, 1);
        let counts = ["large", "small", "tiny"].map(|tenant| workload.count_of(tenant));
        assert_eq!(counts, [280, 10, 10]);
        assert_eq!(workload.ids().collect::<HashSet<_>>().len(), 300);
    }

    #[test]
    fn any_number_of_jobs_is_split_without_a_rest() {
        for jobs in [0, 1, 2, 3, 7, 200, 1000] {
            assert_eq!(Workload::new(jobs, 3).ids().count(), usize::try_from(jobs).unwrap());
        }
    }

    #[test]
    fn the_large_tenant_comes_first_and_the_seed_names_the_jobs() {
        let (one, same, other) = (Workload::new(30, 1), Workload::new(30, 1), Workload::new(30, 2));
        assert!(one.ids().next().unwrap().starts_with("large-"));
        assert_eq!(one.lines(), same.lines());
        assert_ne!(one.lines(), other.lines());
    }
}
