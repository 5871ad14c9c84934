{{ config(unique_key=['company_id', 'fi_year', 'fi_qtr']) }}
select
    c.company_id, c.sk_company_id, f.fi_year, f.fi_qtr, f.fi_qtr_start_date, f.fi_revenue, f.fi_net_earn,
    f.fi_basic_eps, f.fi_dilut_eps, f.fi_margin, f.fi_inventory, f.fi_assets, f.fi_liability, f.fi_out_basic,
    f.fi_out_dilut
from {{ ref('finwire_financials') }} f
join {{ ref('company_lookup') }} c
  on c.company_ref = f.company_ref and f.posted_date >= c.effective_date and f.posted_date < c.end_date
