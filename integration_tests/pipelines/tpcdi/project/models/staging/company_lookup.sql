-- FINWIRE names a company by its number with leading zeros, or by the name that it had
select lpad(cast(company_id as string), 10, '0') as company_ref, company_id, sk_company_id, effective_date, end_date
from {{ ref('dim_company') }}
union all
select name as company_ref, company_id, sk_company_id, effective_date, end_date
from {{ ref('dim_company') }}
