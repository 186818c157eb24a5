//! `ringlog cluster`: who is part of it, who leads it, how full its disks are.

use clap::{Args, Subcommand};
use client::admin::{Admin, ClusterDescription, LogDir, QuorumDescription};
use client::{ClientError, Topic};
use serde_json::{Value, json};

use crate::cli::output::{Table, print, print_json};
use crate::cli::{Connect, Failure};

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Show brokers, the metadata quorum and what they hold.
    #[command(after_help = "Example:\n  ringlog cluster info")]
    Info(InfoArgs),
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    #[command(flatten)]
    connect: Connect,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(command: ClusterCommand) -> Result<(), Failure> {
    let ClusterCommand::Info(args) = command;
    args.connect.clone().run(move |client| info(Admin::new(client), args.json))
}

struct Info {
    cluster: ClusterDescription,
    /// `None`: the cluster has no quorum that answers (an old one).
    quorum: Option<QuorumDescription>,
    topics: Vec<Topic>,
    dirs: Vec<(i32, Vec<LogDir>)>,
}

async fn info(admin: Admin, as_json: bool) -> Result<(), Failure> {
    let cluster = admin.describe_cluster().await?;
    let quorum = match admin.describe_quorum().await {
        Ok(quorum) => Some(quorum),
        Err(ClientError::UnsupportedApi { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let topics = admin.list_topics().await?;
    let mut dirs = Vec::new();
    for (node, found) in admin.describe_log_dirs(None).await? {
        dirs.push((node, found?));
    }
    let info = Info { cluster, quorum, topics, dirs };
    if as_json {
        print_json(&info.json())?
    } else {
        print(&info.text())?
    }
    Ok(())
}

impl Info {
    fn dirs_of(&self, node: i32) -> &[LogDir] {
        self.dirs.iter().find(|(one, _)| *one == node).map_or(&[], |(_, dirs)| dirs)
    }

    fn text(&self) -> String {
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        let leaderless = self.topics.iter().flat_map(|topic| &topic.partitions).filter(|one| one.leader < 0).count();
        let mut text =
            format!("cluster {}  {} topics, {partitions} partitions", self.cluster.cluster_id, self.topics.len());
        if leaderless > 0 {
            text.push_str(&format!(", {leaderless} of them without a leader"));
        }
        text.push('\n');
        if let Some(quorum) = &self.quorum {
            let voters: Vec<String> = quorum.voters.iter().map(|voter| voter.replica_id.to_string()).collect();
            text.push_str(&format!(
                "quorum led by {} since epoch {}, voters {}, at {}\n",
                quorum.leader_id,
                quorum.leader_epoch,
                voters.join(","),
                quorum.high_watermark
            ));
        }
        let mut table = Table::new(&["broker", "address", "rack", "role", "replicas", "bytes", "free bytes", "folder"]);
        for one in &self.cluster.brokers {
            let role = match (one.is_fenced, one.broker.id == self.cluster.controller) {
                (true, _) => "fenced",
                (false, true) => "controller",
                (false, false) => "broker",
            };
            let dirs = self.dirs_of(one.broker.id);
            let bytes: i64 = dirs.iter().flat_map(|dir| &dir.replicas).map(|replica| replica.size_bytes).sum();
            let free: i64 = dirs.iter().map(|dir| dir.usable_bytes.max(0)).sum();
            let folders: Vec<String> = dirs.iter().map(folder).collect();
            table.row(vec![
                one.broker.id.to_string(),
                format!("{}:{}", one.broker.host, one.broker.port),
                one.broker.rack.clone().unwrap_or_else(|| "-".to_owned()),
                role.to_owned(),
                dirs.iter().map(|dir| dir.replicas.len()).sum::<usize>().to_string(),
                bytes.to_string(),
                free.to_string(),
                folders.join(" "),
            ]);
        }
        text + &table.render()
    }

    fn json(&self) -> Value {
        let dir = |dir: &LogDir| {
            let bytes: i64 = dir.replicas.iter().map(|replica| replica.size_bytes).sum();
            json!({
                "path": dir.path, "error": dir.error.as_ref().map(ToString::to_string), "replicas": dir.replicas.len(),
                "bytes": bytes, "total_bytes": dir.total_bytes, "usable_bytes": dir.usable_bytes,
            })
        };
        let broker = |one: &client::admin::DescribedBroker| {
            json!({
                "id": one.broker.id, "host": one.broker.host, "port": one.broker.port, "rack": one.broker.rack,
                "fenced": one.is_fenced, "log_dirs": self.dirs_of(one.broker.id).iter().map(dir).collect::<Vec<_>>(),
            })
        };
        let quorum = self.quorum.as_ref().map(|quorum| {
            json!({
                "leader": quorum.leader_id, "leader_epoch": quorum.leader_epoch,
                "high_watermark": quorum.high_watermark,
                "voters": quorum.voters.iter().map(|voter| voter.replica_id).collect::<Vec<_>>(),
                "observers": quorum.observers.iter().map(|one| one.replica_id).collect::<Vec<_>>(),
            })
        });
        json!({
            "cluster_id": self.cluster.cluster_id,
            "controller": self.cluster.controller,
            "brokers": self.cluster.brokers.iter().map(broker).collect::<Vec<_>>(),
            "quorum": quorum,
            "topics": self.topics.len(),
            "partitions": self.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(),
        })
    }
}

fn folder(dir: &LogDir) -> String {
    match &dir.error {
        None => dir.path.clone(),
        Some(error) => format!("{} ({error})", dir.path),
    }
}
